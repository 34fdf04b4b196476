/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "slots.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64, FLAGS = OVERFLOW | CONGESTION };

int nf_pool_create(struct nf_pool *p, int64_t slots, int64_t lanes, int64_t children) {
    *p = (struct nf_pool){.slots = slots, .lanes = lanes, .children = children, .words = (children + WORD - 1) / WORD};
    p->tags = calloc((size_t)slots, sizeof *p->tags);
    p->seen = calloc((size_t)(slots * p->words), sizeof *p->seen);
    p->flags = calloc((size_t)slots, 1);
    p->exponents = calloc((size_t)slots, 1);
    p->sums = calloc((size_t)(slots * lanes), sizeof *p->sums);
    return p->tags && p->seen && p->flags && p->exponents && p->sums ? 0 : -1;
}

void nf_pool_free(struct nf_pool *p) {
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

/* Gives whether a sum is at a rail. */
static NF_VECTOR int answer(uint32_t *restrict lanes, const int32_t *restrict sums, int64_t count) {
    int rail = 0;
    for (int64_t i = 0; i < count; i++) {
        rail |= sums[i] == INT32_MAX || sums[i] == INT32_MIN;
        lanes[i] = __builtin_bswap32((uint32_t)sums[i]);
    }
    return rail;
}

static int is_full(const struct nf_pool *p, const uint64_t *seen) {
    int64_t whole = p->children / WORD, rest = p->children % WORD;
    for (int64_t i = 0; i < whole; i++)
        if (seen[i] != UINT64_MAX) return 0;
    return !rest || seen[whole] == ((uint64_t)1 << rest) - 1;
}

enum nf_verdict nf_pool_gradient(struct nf_pool *p, int64_t child, const struct header *h, int marked, struct header *result) {
    int64_t slot = __builtin_bswap16(h->slot);
    if (slot >= p->slots) return NF_BAD_SLOT;
    uint32_t tag = __builtin_bswap32(h->tag);
    if (tag < p->tags[slot]) return NF_STALE_CHUNK;
    uint64_t *seen = p->seen + slot * p->words, *word = seen + child / WORD, bit = (uint64_t)1 << child % WORD;
    const uint32_t *lanes = (const uint32_t *)(h + 1);
    int32_t *sums = p->sums + slot * p->lanes;
    uint8_t flags = (uint8_t)((h->flags | (marked ? CONGESTION : 0)) & FLAGS);
    int repeated = tag == p->tags[slot] && (*word & bit);
    if (tag > p->tags[slot]) {
        p->tags[slot] = tag;
        memset(seen, 0, (size_t)p->words * sizeof *seen);
        p->flags[slot] = flags;
        p->exponents[slot] = h->exponent;
        claim(sums, lanes, p->lanes);
    } else {
        p->flags[slot] |= flags;
        if (h->exponent > p->exponents[slot]) p->exponents[slot] = h->exponent;
        if (!repeated) add(sums, lanes, p->lanes);
    }
    *word |= bit;
    if (!is_full(p, seen)) return repeated ? NF_DUPLICATE : NF_ABSORBED;
    *result = *h;
    result->version_kind = VERSION_KIND_RESULT;
    result->flags = p->flags[slot];
    result->exponent = p->exponents[slot];
    result->reserved = 0;
    if (answer(lanes_of(result), sums, p->lanes)) result->flags |= OVERFLOW;
    return repeated ? NF_RESULT_REPEATED : NF_RESULT_SENT;
}
