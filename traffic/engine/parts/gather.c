/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "parts.h"

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    int64_t row = s->first + chunk;
    (void)t;
    h->lanes = target_field(1, call_row_owner(c, row));
    if (!call_owns_row(c, row)) return;
    h->flags = FLAG_DATA;
    nf_row_pack(&c->rows.codec, lanes_of(h), call_input_row(c, row), 0, 0);
}

/* The sum of one contribution is never saturated, whatever its lanes are, so O has no meaning. */
static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->owner;
    (void)t, (void)now;
    call_write_sums(c, &c->rows.codec, s->first + chunk, lanes_of(h), 0, NULL);
    return NF_PENDING;
}

static int64_t plan(struct nf_call *c, const struct tree *t) {
    return c->attempt.run[t->index].last - c->attempt.run[t->index].first;
}

const struct call_part gather_part = {{GATHER, 0, fill, take}, plan};
