/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "parts.h"

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    (void)chunk;
    if (c->rows.form == NF_TO_ALL)
        clear_lanes(t, h);
    else
        h->lanes = target_field(0, TARGET_NONE);
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    (void)t, (void)s, (void)chunk, (void)h, (void)now;
    return NF_PENDING;
}

const struct call_part closing_part = {{CONTROL, 1, fill, take}, one_chunk};
