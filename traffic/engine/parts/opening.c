/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "../call/fingerprint.h"
#include "../wire/call_numbers.h"
#include "parts.h"

/* The first tree's opening has the fingerprint for all; other trees need one only to agree on a scale. */
static int64_t plan(struct nf_call *c, const struct tree *t) {
    return t->index == 0 || (!c->handover.holders && waits_for_opening(c) && call_first_rows(c, t->index) > 0);
}

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    (void)chunk;
    clear_lanes(t, h);
    for (int i = 0; i < FINGERPRINT_LANES; i++) lanes_of(h)[i] = __builtin_bswap32(fingerprint_lane(c, i));
    if (c->handover.holders) return;
    int64_t first = call_run(c, t->index, 0).first, count = call_first_rows(c, t->index);
    for (int64_t row = first; row < first + count; row++)
        if (c->rows.own_exp[row] > h->exponent) h->exponent = c->rows.own_exp[row];
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->owner;
    (void)chunk, (void)now;
    if (t->index == 0) c->attempt.is_opened = 1;
    int64_t contributors = c->attempt.quorum ? h->reserved & COUNT_MASK : c->attempt.contributors;
    for (int i = 0; i < FINGERPRINT_LANES; i++)
        if (__builtin_bswap32(lanes_of(h)[i]) != (uint32_t)contributors * fingerprint_lane(c, i)) return NF_MISMATCH;
    if (waits_for_opening(c) && !c->handover.holders)
        memset(c->rows.agreed_exp + call_run(c, t->index, 0).first, h->exponent, (size_t)call_first_rows(c, t->index));
    return NF_PENDING;
}

const struct call_part opening_part = {{MAIN, 1, fill, take}, plan};
