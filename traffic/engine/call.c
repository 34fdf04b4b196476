/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SUM_BITS = 30 }; /* sums of magnitude up to 2^30 stay clear of the rails of int32 */

struct nf_call *call_create(const struct nf_request *request) {
    struct nf_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->request = *request;
    c->itemsize = nf_itemsize((enum nf_dtype)request->dtype);
    size_t bytes = (size_t)(request->elements * c->itemsize);
    c->input = malloc(bytes + (size_t)(NF_LANES_MAX * c->itemsize)); /* room for the padding */
    if (!c->input) {
        free(c);
        return NULL;
    }
    memcpy(c->input, request->array, bytes);
    return c;
}

static const void *input_row(const struct nf_call *c, int64_t row) { return c->input + row * c->lanes * c->itemsize; }

int call_cut(struct nf_call *c, int64_t lanes) {
    const struct nf_request *r = &c->request;
    float room[NF_LANES_MAX];
    c->lanes = lanes;
    c->rows = (r->elements + lanes - 1) / lanes;
    memset(c->input + r->elements * c->itemsize, 0, (size_t)((c->rows * lanes - r->elements) * c->itemsize));
    c->own = calloc((size_t)c->rows, 3);
    if (!c->own) return -1;
    c->agreed = c->own + c->rows;
    c->repeat = c->agreed + c->rows;
    if (is_float(c))
        for (int64_t row = 0; row < c->rows; row++)
            c->own[row] = nf_exponent(nf_load((enum nf_dtype)r->dtype, input_row(c, row), room, lanes), lanes);
    return 0;
}

static void forget_again(struct nf_call *c) {
    for (int64_t i = 0; i < c->tree_count; i++) {
        struct again *a = &c->again[i];
        free(a->special);
        free(a->kinds);
        free(a->rows);
        free(a->place);
        free(a->halves);
        *a = (struct again){0};
    }
}

void call_restart(struct nf_call *c, const struct nf_assignment *a) {
    forget_again(c);
    c->workers = a->workers;
    c->tree_count = a->tree_count;
    int h = 0;
    while ((int64_t)1 << h < c->workers) h++;
    c->sum_bits = SUM_BITS - h;
    c->divisor = c->request.op == NF_AVERAGE ? (double)c->workers : 1;
    memset(c->repeat, 0, (size_t)c->rows);
    int64_t from = 0;
    for (int64_t i = 0; i < a->tree_count; i++) {
        int64_t upto = i + 1 == a->tree_count ? c->rows : (int64_t)rint(a->trees[i].upto * (double)c->rows);
        if (upto > c->rows) upto = c->rows;
        c->again[i].first = from;
        c->again[i].last = from = upto > from ? upto : from;
    }
}

void call_restore(struct nf_call *c) {
    memcpy(c->request.array, c->input, (size_t)(c->request.elements * c->itemsize));
}

void call_free(struct nf_call *c) {
    forget_again(c);
    free(c->own);
    free(c->input);
    free(c);
}

/* 48 bits that differ, but for one case in 2^48, if anything does that workers have to have in common: three rounds of
 * splitmix64 over each number. */
static uint64_t fingerprint(const struct nf_call *c) {
    const struct nf_request *r = &c->request;
    const int64_t parts[] = {c->outcome.number, r->elements, r->dtype, r->op, r->scheme, r->bits};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ (uint64_t)parts[i]) + 0x9E3779B97F4A7C15u;
        hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
        hash = (hash ^ hash >> 27) * 0x94D049BB133111EBu;
        hash ^= hash >> 31;
    }
    return hash;
}

static uint32_t print_lane(const struct nf_call *c, int lane) { return (uint32_t)(fingerprint(c) >> 16 * lane & 0xFFFF); }

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

static int64_t plan_kinds(struct nf_call *c, struct again *a) {
    if (!is_float(c)) return 0;
    for (int64_t row = a->first; row < a->last; row++) a->special_count += c->repeat[row] && c->agreed[row] == NF_NOT_FINITE;
    if (!a->special_count) return 0;
    a->special = malloc((size_t)a->special_count * sizeof *a->special);
    a->kinds = calloc((size_t)(a->special_count * c->lanes), sizeof *a->kinds);
    if (!a->special || !a->kinds) return -1;
    int64_t n = 0;
    for (int64_t row = a->first; row < a->last; row++)
        if (c->repeat[row] && c->agreed[row] == NF_NOT_FINITE) a->special[n++] = row;
    return n;
}

static int64_t plan_repeat(struct nf_call *c, struct again *a) {
    for (int64_t row = a->first; row < a->last; row++) a->count += c->repeat[row];
    if (!a->count) return 0;
    c->overflows += a->count;
    a->rows = malloc((size_t)a->count * sizeof *a->rows);
    a->place = malloc((size_t)a->count * sizeof *a->place);
    if (!is_float(c)) a->halves = calloc((size_t)(2 * a->count * c->lanes), sizeof *a->halves);
    if (!a->rows || !a->place || (!is_float(c) && !a->halves)) return -1;
    int64_t n = 0;
    for (int64_t row = a->first; row < a->last; row++) {
        if (!c->repeat[row]) continue;
        a->rows[n] = row;
        a->place[n++] = find(a->special, a->special_count, row);
    }
    return is_float(c) ? n : 2 * n;
}

int64_t call_plan(struct nf_call *c, enum part part, const struct tree *t) {
    struct again *a = &c->again[t->index];
    switch (part) {
    case RESUME:
    case CLOSING:
        return t->index == 0;
    case OPENING:
        return t->index == 0 || (a->first < a->last && shares_exponents(c));
    case DATA:
        return a->last - a->first;
    case KINDS:
        return plan_kinds(c, a);
    case REPEAT:
        return plan_repeat(c, a);
    default:
        return 0;
    }
}

static void fill_opening(const struct nf_call *c, const struct again *a, const struct tree *t, struct header *h) {
    int64_t last = a->first + t->count < a->last ? a->first + t->count : a->last;
    for (int i = 0; i < FINGERPRINT; i++) lanes_of(h)[i] = __builtin_bswap32(print_lane(c, i));
    for (int64_t row = a->first; row < last; row++)
        if (c->own[row] > h->exponent) h->exponent = c->own[row];
}

static void fill_data(const struct nf_call *c, const struct again *a, const struct tree *t, int64_t row, struct header *h) {
    uint32_t *to = lanes_of(h);
    if (!is_float(c)) {
        nf_swap(to, input_row(c, row), c->lanes);
        return;
    }
    float room[NF_LANES_MAX];
    const float *from = nf_load((enum nf_dtype)c->request.dtype, input_row(c, row), room, c->lanes);
    if (!shares_exponents(c)) {
        h->exponent = c->own[row];
        h->flags = nf_quantize_saturating(to, from, (int)c->request.bits, c->lanes) ? OVERFLOW : 0;
        return;
    }
    h->exponent = row + t->count < a->last ? c->own[row + t->count] : 0; /* the next one of the channel */
    if (c->agreed[row] == NF_NOT_FINITE)
        memset(to, 0, (size_t)(4 * c->lanes));
    else
        nf_quantize(to, from, nf_shared_bits(c->agreed[row], c->sum_bits), c->lanes);
}

static void fill_repeat(const struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    if (!is_float(c)) {
        nf_half(lanes_of(h), input_row(c, a->rows[chunk / 2]), chunk % 2 == 0, c->lanes);
        return;
    }
    float room[NF_LANES_MAX];
    int64_t row = a->rows[chunk];
    const float *from = nf_load((enum nf_dtype)c->request.dtype, input_row(c, row), room, c->lanes);
    nf_quantize_finite(lanes_of(h), from, nf_shared_bits(c->agreed[row], c->sum_bits), c->lanes);
}

void call_fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->call;
    const struct again *a = &c->again[t->index];
    float room[NF_LANES_MAX];
    if (s->part != DATA) memset(lanes_of(h), 0, (size_t)(4 * t->lanes));
    switch (s->part) {
    case RESUME: /* the first call whose results this worker lacks */
    case CLOSING:
        lanes_of(h)[(c->outcome.number + (s->part == RESUME && c->complete)) % NF_CALLS] = __builtin_bswap32(1);
        break;
    case OPENING:
        fill_opening(c, a, t, h);
        break;
    case DATA:
        fill_data(c, a, t, a->first + chunk, h);
        break;
    case KINDS: {
        const float *from = nf_load((enum nf_dtype)c->request.dtype, input_row(c, a->special[chunk]), room, c->lanes);
        nf_kinds(lanes_of(h), from, c->lanes);
        h->exponent = nf_finite_exponent(from, c->lanes);
        break;
    }
    default:
        fill_repeat(c, a, chunk, h);
    }
}

static void write_floats(const struct nf_call *c, int64_t row, const float *values) {
    int64_t rest = c->request.elements - row * c->lanes, count = rest < c->lanes ? rest : c->lanes;
    nf_store((enum nf_dtype)c->request.dtype, (uint8_t *)c->request.array + row * c->lanes * c->itemsize, values, count);
}

static void write_sums(const struct nf_call *c, int64_t row, const uint32_t *lanes, int bits, const int32_t *kinds) {
    int64_t rest = c->request.elements - row * c->lanes, count = rest < c->lanes ? rest : c->lanes;
    float room[NF_LANES_MAX], *to = room;
    int direct = c->request.dtype == NF_FLOAT32;
    if (direct) to = (float *)c->request.array + row * c->lanes;
    nf_dequantize(to, lanes, ldexp(1, -bits) / c->divisor, count);
    if (kinds) nf_overlay(to, kinds, count);
    if (!direct) write_floats(c, row, to);
}

static int64_t take_data(struct nf_call *c, const struct again *a, const struct tree *t, int64_t row, struct header *h) {
    int overflow = (h->flags & OVERFLOW) != 0;
    if (!is_float(c)) {
        int64_t rest = c->request.elements - row * c->lanes;
        nf_swap((uint32_t *)c->request.array + row * c->lanes, lanes_of(h), rest < c->lanes ? rest : c->lanes);
        c->repeat[row] = (uint8_t)overflow;
        return NF_PENDING;
    }
    if (!shares_exponents(c)) {
        c->agreed[row] = h->exponent;
        c->repeat[row] = overflow || h->exponent == NF_NOT_FINITE;
        if (!c->repeat[row]) write_sums(c, row, lanes_of(h), (int)c->request.bits, NULL);
        return NF_PENDING;
    }
    if (overflow) return NF_BEYOND_SCALE;
    c->repeat[row] = c->agreed[row] == NF_NOT_FINITE;
    if (!c->repeat[row]) write_sums(c, row, lanes_of(h), nf_shared_bits(c->agreed[row], c->sum_bits), NULL);
    if (row + t->count < a->last) c->agreed[row + t->count] = h->exponent;
    return NF_PENDING;
}

static int64_t take_repeat(struct nf_call *c, const struct again *a, int64_t chunk, struct header *h) {
    if (!is_float(c)) {
        nf_swap((uint32_t *)(a->halves + chunk * c->lanes), lanes_of(h), c->lanes);
        return NF_PENDING;
    }
    if (h->flags & OVERFLOW) return NF_BEYOND_SCALE;
    int64_t row = a->rows[chunk], place = a->place[chunk];
    write_sums(c, row, lanes_of(h), nf_shared_bits(c->agreed[row], c->sum_bits),
               place < 0 ? NULL : a->kinds + place * c->lanes);
    return NF_PENDING;
}

static int64_t take_opening(struct nf_call *c, const struct again *a, const struct tree *t, struct header *h) {
    for (int i = 0; i < FINGERPRINT; i++)
        if (__builtin_bswap32(lanes_of(h)[i]) != (uint32_t)c->workers * print_lane(c, i)) return NF_MISMATCH;
    int64_t last = a->first + t->count < a->last ? a->first + t->count : a->last;
    if (shares_exponents(c)) memset(c->agreed + a->first, h->exponent, (size_t)(last - a->first));
    return NF_PENDING;
}

int64_t call_take(const struct tree *t, struct segment *s, int64_t chunk, struct header *h) {
    struct nf_call *c = s->call;
    const struct again *a = &c->again[t->index];
    switch (s->part) {
    case RESUME:
        nf_swap((uint32_t *)c->votes, lanes_of(h), NF_CALLS);
        return NF_PENDING;
    case OPENING:
        return take_opening(c, a, t, h);
    case DATA:
        return take_data(c, a, t, a->first + chunk, h);
    case KINDS:
        nf_swap((uint32_t *)(a->kinds + chunk * c->lanes), lanes_of(h), c->lanes);
        c->agreed[a->special[chunk]] = h->exponent;
        return NF_PENDING;
    case REPEAT:
        return take_repeat(c, a, chunk, h);
    default:
        return NF_PENDING;
    }
}

int64_t call_join(struct nf_call *c) {
    int64_t status = NF_DONE;
    if (is_float(c)) return status;
    for (int64_t i = 0; i < c->tree_count; i++) {
        const struct again *a = &c->again[i];
        for (int64_t k = 0; k < a->count * c->lanes; k++) {
            int64_t row = a->rows[k / c->lanes], lane = k % c->lanes, index = row * c->lanes + lane;
            const int32_t *high = a->halves + 2 * (k / c->lanes) * c->lanes;
            int64_t sum = (int64_t)high[lane] * 65536 + high[c->lanes + lane];
            if (index >= c->request.elements) continue;
            if ((sum < INT32_MIN || sum > INT32_MAX) && status == NF_DONE) {
                c->outcome.index = index;
                c->outcome.total = sum;
                status = NF_SUM_OVERFLOW;
            }
            ((int32_t *)c->request.array)[index] = (int32_t)sum;
        }
    }
    return status;
}
