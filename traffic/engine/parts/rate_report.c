/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "parts.h"

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    (void)chunk;
    clear_lanes(t, h);
    nf_balance_write_report(c->attempt.balance, lanes_of(h));
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->owner;
    (void)t, (void)chunk, (void)now;
    nf_balance_take_reports(c->attempt.balance, lanes_of(h));
    return NF_PENDING;
}

const struct call_part rate_report_part = {{CONTROL, 0, fill, take}, one_chunk};
