/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "repeat.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct again *a) {
    free(a->special);
    free(a->kinds);
    free(a->rows);
    free(a->place);
    free(a->halves);
    *a = (struct again){.first = a->first, .last = a->last};
}

void repeat_forget(struct nf_call *c) {
    for (int64_t i = 0; i < c->tree_count; i++) forget(&c->again[i]);
}

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

int64_t repeat_plan_kinds(struct nf_call *c, struct again *a) {
    forget(a);
    if (!is_scaled(c)) return 0;
    for (int64_t row = a->first; row < a->last; row++) a->special_count += c->repeat[row] && c->agreed[row] == NF_NOT_FINITE;
    if (!a->special_count) return 0;
    a->special = malloc((size_t)a->special_count * sizeof *a->special);
    a->kinds = calloc((size_t)(a->special_count * c->codec.width), sizeof *a->kinds);
    if (!a->special || !a->kinds) return -1;
    int64_t n = 0;
    for (int64_t row = a->first; row < a->last; row++)
        if (c->repeat[row] && c->agreed[row] == NF_NOT_FINITE) a->special[n++] = row;
    return n * nf_row_kind_chunks(&c->codec);
}

int64_t repeat_plan(struct nf_call *c, struct again *a) {
    for (int64_t row = a->first; row < a->last; row++) a->count += c->repeat[row];
    if (!a->count) return 0;
    c->overflows += a->count;
    a->rows = malloc((size_t)a->count * sizeof *a->rows);
    a->place = malloc((size_t)a->count * sizeof *a->place);
    if (!is_scaled(c)) a->halves = calloc((size_t)(2 * a->count * c->codec.lanes), sizeof *a->halves);
    if (!a->rows || !a->place || (!is_scaled(c) && !a->halves)) return -1;
    int64_t n = 0;
    for (int64_t row = a->first; row < a->last; row++) {
        if (!c->repeat[row]) continue;
        c->repeat[row] = 0;
        a->rows[n] = row;
        a->place[n++] = find(a->special, a->special_count, row);
    }
    return is_scaled(c) ? n : 2 * n;
}

void repeat_fill_kinds(const struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    int64_t chunks = nf_row_kind_chunks(&c->codec);
    const void *from = call_input_row(c, a->special[chunk / chunks]);
    nf_row_kinds(&c->codec, lanes_of(h), from, chunk % chunks);
    h->exponent = nf_row_exponent(&c->codec, from, 1);
}

/* With a quorum scales are agreed without those who were late, and of those who were in some may be gone. So what does not fit
 * counts all the same, as zeros, and says what would fit: then all repeat the row. Where the kinds went without somebody nothing
 * of the row is left that zeros could spoil. */
static int declines(const struct nf_call *c, int64_t row, int64_t place, struct header *h) {
    if (!c->quorum) return 0;
    uint8_t own = place < 0 ? c->own[row] : nf_row_exponent(&c->codec, call_input_row(c, row), 1);
    if (own <= c->agreed[row]) return 0;
    memset(lanes_of(h), 0, (size_t)(4 * c->codec.lanes));
    if (place < 0) {
        h->exponent = own;
        h->flags |= OVERFLOW;
    }
    return 1;
}

void repeat_fill(const struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    if (!is_scaled(c)) {
        nf_half(lanes_of(h), call_input_row(c, a->rows[chunk / 2]), chunk % 2 == 0, c->codec.lanes);
        return;
    }
    int64_t row = a->rows[chunk];
    if (declines(c, row, a->place[chunk], h)) return;
    nf_row_pack(&c->codec, lanes_of(h), call_input_row(c, row), nf_row_bits(&c->codec, c->agreed[row]), 1);
}

int64_t repeat_take(struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    if (!is_scaled(c)) {
        nf_swap((uint32_t *)(a->halves + chunk * c->codec.lanes), lanes_of(h), c->codec.lanes);
        return NF_PENDING;
    }
    int64_t row = a->rows[chunk], place = a->place[chunk];
    if (h->flags & OVERFLOW) {
        if (!c->quorum) return NF_BEYOND_SCALE;
        c->agreed[row] = h->exponent;
        c->repeat[row] = 1;
        return NF_PENDING;
    }
    call_write_sums(c, row, lanes_of(h), nf_row_bits(&c->codec, c->agreed[row]),
                    place < 0 ? NULL : a->kinds + place * c->codec.width);
    return NF_PENDING;
}

enum { NEITHER = 1 + (1 << 16) }; /* infinities of both signs: NaN */

void repeat_take_kinds(struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    int64_t chunks = nf_row_kind_chunks(&c->codec), place = chunk / chunks, width = c->codec.width, lanes = c->codec.lanes;
    int32_t *to = a->kinds + place * width + chunk % chunks * lanes;
    nf_swap((uint32_t *)to, lanes_of(h), width < lanes ? width : lanes);
    if (c->quorum && (h->reserved & COUNT) < c->workers) /* whoever is missing may have one anywhere */
        for (int64_t i = 0; i < (width < lanes ? width : lanes); i++) to[i] = NEITHER;
    c->agreed[a->special[place]] = h->exponent;
}

int repeat_is_due(const struct nf_call *c) { return memchr(c->repeat, 1, (size_t)c->rows) != NULL; }

static void join_halves(struct nf_call *c, const struct again *a) {
    int64_t lanes = c->codec.lanes;
    for (int64_t k = 0; k < a->count * lanes; k++) {
        int64_t lane = k % lanes, index = a->rows[k / lanes] * lanes + lane;
        const int32_t *high = a->halves + 2 * (k / lanes) * lanes;
        int64_t sum = (int64_t)high[lane] * 65536 + high[lanes + lane];
        if (index >= c->request.elements) continue;
        if ((sum < INT32_MIN || sum > INT32_MAX) && c->excess.index < 0) c->excess = (struct nf_excess){index, sum};
        ((int32_t *)c->request.array)[index] = (int32_t)sum;
    }
}

int64_t repeat_join(struct nf_call *c) {
    if (c->codec.form == NF_WORDS)
        for (int64_t i = 0; i < c->tree_count; i++) join_halves(c, &c->again[i]);
    if (c->excess.index < 0) return NF_DONE;
    c->outcome.index = c->excess.index;
    c->outcome.total = (int64_t)c->excess.total;
    c->outcome.total_high = (int64_t)(c->excess.total >> 64);
    return NF_SUM_OVERFLOW;
}
