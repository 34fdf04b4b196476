/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "reencode.h"

#include <stdlib.h>

#include "../call/ranges.h"
#include "contributors.h"

static int64_t find(const int64_t *sorted, int64_t count, int64_t wanted) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (sorted[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && sorted[low] == wanted ? low : -1;
}

/* Returns the chunks of a row: a rotated one has more elements than one that is re-encoded. */
static int64_t chunks_of_row(const struct nf_call *c) {
    struct nf_codec codec;
    nf_codec_reencoder(&codec, &c->rows.codec);
    return is_scaled(c) ? c->rows.codec.width / codec.width : 2;
}

static int64_t plan(struct nf_call *c, const struct tree *t) {
    struct reencode_plan *p = &c->attempt.reencode[t->index];
    struct nf_run run = c->attempt.run[t->index];
    uint8_t *needs_reencode = c->rows.needs_reencode;
    for (int64_t row = run.first; row < run.last; row++) p->count += needs_reencode[row];
    if (!p->count) return 0;
    c->attempt.reencoded_chunks += p->count;
    p->rows = malloc((size_t)p->count * sizeof *p->rows);
    p->special_place = malloc((size_t)p->count * sizeof *p->special_place);
    if (!is_scaled(c)) p->halves = calloc((size_t)(2 * p->count * c->rows.codec.lanes), sizeof *p->halves);
    if (!p->rows || !p->special_place || (!is_scaled(c) && !p->halves)) return -1;
    int64_t n = 0;
    for (int64_t row = run.first; row < run.last; row++) {
        if (!needs_reencode[row]) continue;
        needs_reencode[row] = 0;
        p->rows[n] = row;
        p->special_place[n++] = find(p->special, p->special_count, row);
    }
    return n * chunks_of_row(c);
}

/* With a quorum scales are agreed without late workers, and workers that were in some may be gone. A row that does not fit
 * contributes zeros and a scale that would fit: then all re-encode it once more. Where the special codes went without a worker
 * all of the row is NaN, and zeros cannot spoil it. */
static int fill_overflow(const struct nf_call *c, int64_t row, int64_t special_place, struct header *h) {
    if (!c->attempt.quorum) return 0;
    int is_finite = special_place < 0;
    uint8_t own = is_finite ? c->rows.own_exp[row] : nf_row_exponent(&c->rows.codec, call_input_row(c, row), 1);
    if (own <= c->rows.agreed_exp[row]) return 0;
    if (is_finite) {
        h->exponent = own;
        h->flags |= FLAG_OVERFLOW;
    }
    return 1;
}

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    const struct reencode_plan *p = &c->attempt.reencode[t->index];
    int64_t chunks = chunks_of_row(c), row = p->rows[chunk / chunks], part = chunk % chunks;
    clear_lanes(t, h);
    if (!is_scaled(c)) {
        nf_int32_half(lanes_of(h), call_input_row(c, row), part == 0, c->rows.codec.lanes);
        return;
    }
    if (fill_overflow(c, row, p->special_place[chunk / chunks], h)) return;
    struct nf_codec codec;
    nf_codec_reencoder(&codec, &c->rows.codec);
    const uint8_t *from = (const uint8_t *)call_input_row(c, row) + part * codec.width * codec.itemsize;
    nf_row_pack(&codec, lanes_of(h), from, nf_row_bits(&codec, c->rows.agreed_exp[row]), 1);
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->owner;
    const struct reencode_plan *p = &c->attempt.reencode[t->index];
    int64_t lanes = c->rows.codec.lanes;
    (void)now;
    if (c->attempt.quorum) note_contributors(c, h->reserved & COUNT_MASK);
    if (!is_scaled(c)) {
        nf_swap_lane_bytes((uint32_t *)(p->halves + chunk * lanes), lanes_of(h), lanes);
        return NF_PENDING;
    }
    struct nf_codec codec;
    nf_codec_reencoder(&codec, &c->rows.codec);
    int64_t chunks = chunks_of_row(c), part = chunk % chunks, row = p->rows[chunk / chunks];
    int64_t place = p->special_place[chunk / chunks];
    if (h->flags & FLAG_OVERFLOW) {
        if (!c->attempt.quorum) return NF_SCALE_OVERFLOW;
        c->rows.agreed_exp[row] = h->exponent;
        c->rows.needs_reencode[row] = 1;
        return NF_PENDING;
    }
    const int32_t *codes = place < 0 ? NULL : p->special_codes + place * c->rows.codec.width + part * codec.width;
    int64_t row_of_codec = row * chunks + part;
    call_write_sums(c, &codec, row_of_codec, lanes_of(h), nf_row_bits(&codec, c->rows.agreed_exp[row]), codes);
    ranges_note_sums(c, &codec, row_of_codec);
    return NF_PENDING;
}

int reencode_is_due(const struct nf_call *c) { return memchr(c->rows.needs_reencode, 1, (size_t)c->rows.count) != NULL; }

static void join_halves(struct nf_call *c, const struct reencode_plan *p) {
    struct nf_excess *excess = &c->attempt.excess;
    int64_t lanes = c->rows.codec.lanes;
    for (int64_t k = 0; k < p->count * lanes; k++) {
        struct row_place place = call_row_place(c, lanes, p->rows[k / lanes]);
        int64_t lane = k % lanes, index = place.first + lane;
        const int32_t *high = p->halves + 2 * (k / lanes) * lanes;
        int64_t sum = (int64_t)high[lane] * 65536 + high[lanes + lane];
        if (lane >= place.count || !call_wants_row(c, p->rows[k / lanes])) continue;
        if ((sum < INT32_MIN || sum > INT32_MAX) && excess->index < 0) *excess = (struct nf_excess){index, sum};
        ((int32_t *)c->request.array)[index] = (int32_t)sum;
    }
}

int64_t reencode_finish(struct nf_call *c) {
    const struct nf_excess *excess = &c->attempt.excess;
    if (c->rows.codec.format == NF_LANE_INT32)
        for (int64_t i = 0; i < c->attempt.tree_count; i++) join_halves(c, &c->attempt.reencode[i]);
    if (excess->index < 0) return NF_DONE;
    c->outcome.index = excess->index;
    c->outcome.total = (int64_t)excess->total;
    c->outcome.total_high = (int64_t)(excess->total >> 64);
    return NF_SUM_OVERFLOW;
}

const struct call_part reencoded_part = {{CONTROL, 1, fill, take}, plan};
