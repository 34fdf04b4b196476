/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "parts.h"

static int is_special(const struct nf_call *c, int64_t row) {
    return c->rows.needs_reencode[row] && c->rows.agreed_exp[row] == NF_NOT_FINITE;
}

static int64_t plan(struct nf_call *c, const struct tree *t) {
    struct reencode_plan *p = &c->attempt.reencode[t->index];
    struct nf_run run = c->attempt.run[t->index];
    call_clear_reencode_plan(p);
    if (!is_scaled(c)) return 0;
    for (int64_t row = run.first; row < run.last; row++) p->special_count += is_special(c, row);
    if (!p->special_count) return 0;
    p->special = malloc((size_t)p->special_count * sizeof *p->special);
    p->special_codes = calloc((size_t)(p->special_count * c->rows.codec.width), sizeof *p->special_codes);
    if (!p->special || !p->special_codes) return -1;
    int64_t n = 0;
    for (int64_t row = run.first; row < run.last; row++)
        if (is_special(c, row)) p->special[n++] = row;
    return n * nf_row_special_chunks(&c->rows.codec);
}

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    int64_t chunks = nf_row_special_chunks(&c->rows.codec);
    const void *from = call_input_row(c, c->attempt.reencode[t->index].special[chunk / chunks]);
    clear_lanes(t, h);
    nf_row_special_codes(&c->rows.codec, lanes_of(h), from, chunk % chunks);
    h->exponent = nf_row_exponent(&c->rows.codec, from, 1);
}

enum { NAN_CODE = 1 + (1 << 16) }; /* infinities of both signs */

/* With a quorum a missing worker may have a special value anywhere. */
static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->owner;
    const struct reencode_plan *p = &c->attempt.reencode[t->index];
    int64_t width = c->rows.codec.width, lanes = c->rows.codec.lanes, count = width < lanes ? width : lanes;
    int64_t chunks = nf_row_special_chunks(&c->rows.codec), place = chunk / chunks;
    int32_t *to = p->special_codes + place * width + chunk % chunks * lanes;
    (void)now;
    nf_swap_lane_bytes((uint32_t *)to, lanes_of(h), count);
    if (c->attempt.quorum && (h->reserved & COUNT_MASK) < c->attempt.workers)
        for (int64_t i = 0; i < count; i++) to[i] = NAN_CODE;
    c->rows.agreed_exp[p->special[place]] = h->exponent;
    return NF_PENDING;
}

const struct call_part specials_part = {{CONTROL, 1, fill, take}, plan};
