/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "slots.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64, FLAGS = OVERFLOW | CONGESTION | FLOATS };

int nf_pool_create(struct nf_pool *p, int64_t slots, int64_t lanes, int64_t children) {
    *p = (struct nf_pool){.slots = slots, .lanes = lanes, .children = children, .words = (children + WORD - 1) / WORD};
    p->tags = calloc((size_t)slots, sizeof *p->tags);
    p->seen = calloc((size_t)(slots * p->words), sizeof *p->seen);
    p->flags = calloc((size_t)slots, 1);
    p->exponents = calloc((size_t)slots, 1);
    p->sums = calloc((size_t)(slots * lanes), sizeof *p->sums);
    return p->tags && p->seen && p->flags && p->exponents && p->sums ? 0 : -1;
}

int nf_pool_quorum(struct nf_pool *p, int64_t own, int64_t least) {
    p->own = own;
    p->least = least;
    p->sealing = calloc((size_t)p->slots, sizeof *p->sealing);
    return p->sealing ? 0 : -1;
}

void nf_pool_free(struct nf_pool *p) {
    free(p->sealing);
    free(p->tags);
    free(p->seen);
    free(p->flags);
    free(p->exponents);
    free(p->sums);
}

static NF_VECTOR void claim(int32_t *restrict sums, const uint32_t *restrict lanes, int64_t count) {
    for (int64_t i = 0; i < count; i++) sums[i] = (int32_t)__builtin_bswap32(lanes[i]);
}

/* Cut to int32; a sum at a rail stays there. */
static NF_VECTOR void add(int32_t *restrict sums, const uint32_t *restrict lanes, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int32_t sum = sums[i], lane = (int32_t)__builtin_bswap32(lanes[i]);
        int32_t total = (int32_t)((uint32_t)sum + (uint32_t)lane), rail = lane < 0 ? INT32_MIN : INT32_MAX;
        total = ((sum ^ total) & (lane ^ total)) < 0 ? rail : total;
        sums[i] = sum == INT32_MAX || sum == INT32_MIN ? sum : total;
    }
}

/* Of lanes that are floats. There is one NaN. */
static NF_VECTOR void add_floats(int32_t *restrict sums, const uint32_t *restrict lanes, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t total = nf_bits_of(nf_float_of((uint32_t)sums[i]) + nf_float_of(__builtin_bswap32(lanes[i])));
        sums[i] = (int32_t)((total & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : total);
    }
}

/* Gives whether a sum is at a rail. */
static NF_VECTOR int answer(uint32_t *restrict lanes, const int32_t *restrict sums, int64_t count) {
    int rail = 0;
    for (int64_t i = 0; i < count; i++) {
        rail |= sums[i] == INT32_MAX || sums[i] == INT32_MIN;
        lanes[i] = __builtin_bswap32((uint32_t)sums[i]);
    }
    return rail;
}

/* Whether the first `count` senders are in. */
static int are_in(const uint64_t *seen, int64_t count) {
    int64_t whole = count / WORD, rest = count % WORD;
    for (int64_t i = 0; i < whole; i++)
        if (seen[i] != UINT64_MAX) return 0;
    return !rest || !(~seen[whole] & (((uint64_t)1 << rest) - 1));
}

/* A sum that leaves. */
static void make_result(const struct nf_pool *p, int64_t slot, const struct header *h, struct header *result) {
    *result = *h;
    result->version_kind = VERSION_KIND_RESULT;
    result->flags = p->flags[slot];
    result->exponent = p->exponents[slot];
    result->reserved = h->reserved & ROCE ? h->reserved : 0;
    int rail = answer(lanes_of(result), p->sums + slot * p->lanes, p->lanes);
    if (rail && !(result->flags & FLOATS)) result->flags |= OVERFLOW;
}

static void count_in(struct nf_sealing *s, const struct header *h, int fresh) {
    if (fresh) s->count = (uint8_t)((s->count + (h->reserved & COUNT)) & COUNT);
    s->asked |= (h->flags & SEAL) != 0;
}

/* Whether a sum is enough, and whether it was before. */
static int seal(const struct nf_pool *p, struct nf_sealing *s, const uint64_t *seen, int *again) {
    *again = s->sealed;
    if (!s->sealed) s->sealed = s->asked ? s->count >= p->least : are_in(seen, p->own);
    return s->sealed;
}

/* What came when the sum was sealed, or when its slot has moved on: the sender is told. */
static enum nf_verdict too_late(struct nf_pool *p, int64_t slot, const struct header *h, int marked, struct header *result) {
    if (__builtin_bswap32(h->tag) < p->tags[slot]) {
        *result = *h;
        memmove(lanes_of(result), h + 1, (size_t)(4 * p->lanes));
        result->version_kind = VERSION_KIND_RESULT;
        result->flags = QUORUM | LAPPED;
        result->reserved = 0;
        return NF_LAPPED;
    }
    p->flags[slot] |= (uint8_t)((h->flags | (marked ? CONGESTION : 0)) & CONGESTION);
    make_result(p, slot, h, result);
    result->flags |= QUORUM | SEAL;
    result->reserved = p->sealing[slot].count;
    return NF_LATE;
}

enum nf_verdict nf_pool_gradient(struct nf_pool *p, int64_t child, const struct header *h, int marked, struct header *result) {
    int64_t slot = __builtin_bswap16(h->slot);
    if (slot >= p->slots) return NF_BAD_SLOT;
    uint32_t tag = __builtin_bswap32(h->tag);
    struct nf_sealing *sealing = p->least && h->flags & QUORUM ? p->sealing + slot : NULL;
    if (tag < p->tags[slot]) return sealing ? too_late(p, slot, h, marked, result) : NF_STALE_CHUNK;
    uint64_t *seen = p->seen + slot * p->words, *word = seen + child / WORD, bit = (uint64_t)1 << child % WORD;
    const uint32_t *lanes = (const uint32_t *)(h + 1);
    int32_t *sums = p->sums + slot * p->lanes;
    uint8_t flags = (uint8_t)((h->flags | (marked ? CONGESTION : 0)) & FLAGS);
    int repeated = tag == p->tags[slot] && (*word & bit);
    if (sealing && tag > p->tags[slot]) *sealing = (struct nf_sealing){0, 0, 0};
    if (sealing && sealing->sealed && !repeated) return too_late(p, slot, h, marked, result);
    if (tag > p->tags[slot]) {
        p->tags[slot] = tag;
        memset(seen, 0, (size_t)p->words * sizeof *seen);
        p->flags[slot] = flags;
        p->exponents[slot] = h->exponent;
        claim(sums, lanes, p->lanes);
    } else {
        p->flags[slot] |= flags;
        if (h->exponent > p->exponents[slot]) p->exponents[slot] = h->exponent;
        if (!repeated) (p->flags[slot] & FLOATS ? add_floats : add)(sums, lanes, p->lanes);
    }
    *word |= bit;
    int again = repeated;
    if (sealing) count_in(sealing, h, !repeated);
    if (!(sealing ? seal(p, sealing, seen, &again) : are_in(seen, p->children))) return repeated ? NF_DUPLICATE : NF_ABSORBED;
    make_result(p, slot, h, result);
    if (sealing) {
        result->flags |= QUORUM;
        result->reserved = sealing->count;
    }
    return again ? NF_RESULT_REPEATED : NF_RESULT_SENT;
}
