/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "slot_pool.h"

#include <stdlib.h>
#include <string.h>

#include "../numerics/quantize.h"
#include "../wire/target.h"

enum { WORD_BITS = 64, STICKY_FLAGS = FLAG_OVERFLOW | FLAG_CONGESTION | FLAG_FLOATS | FLAG_DATA };

int nf_slot_pool_init(struct nf_slot_pool *p, enum nf_role role, int64_t slots, int64_t lanes, int64_t children) {
    *p = (struct nf_slot_pool){.role = role, .slots = slots, .lanes = lanes, .children = children};
    p->words = (children + WORD_BITS - 1) / WORD_BITS;
    p->tags = calloc((size_t)slots, sizeof *p->tags);
    p->bitmaps = calloc((size_t)(slots * p->words), sizeof *p->bitmaps);
    p->flags = calloc((size_t)slots, 1);
    p->exponents = calloc((size_t)slots, 1);
    p->sums = calloc((size_t)(slots * lanes), sizeof *p->sums);
    return p->tags && p->bitmaps && p->flags && p->exponents && p->sums ? 0 : -1;
}

int nf_slot_pool_set_quorum(struct nf_slot_pool *p, int64_t direct_children, int64_t min_contributions) {
    p->direct_children = direct_children;
    p->min_contributions = min_contributions;
    p->seals = calloc((size_t)p->slots, sizeof *p->seals);
    return p->seals ? 0 : -1;
}

void nf_slot_pool_free(struct nf_slot_pool *p) {
    free(p->seals);
    free(p->tags);
    free(p->bitmaps);
    free(p->flags);
    free(p->exponents);
    free(p->sums);
}

static NF_VECTOR void claim_lanes(int32_t *restrict sums, const uint32_t *restrict lanes, int64_t count) {
    for (int64_t i = 0; i < count; i++) sums[i] = (int32_t)__builtin_bswap32(lanes[i]);
}

/* Adds with saturation; a saturated sum stays saturated. */
static NF_VECTOR void add(int32_t *restrict sums, const uint32_t *restrict lanes, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int32_t sum = sums[i], lane = (int32_t)__builtin_bswap32(lanes[i]);
        int32_t total = (int32_t)((uint32_t)sum + (uint32_t)lane), limit = lane < 0 ? INT32_MIN : INT32_MAX;
        total = ((sum ^ total) & (lane ^ total)) < 0 ? limit : total;
        sums[i] = sum == INT32_MAX || sum == INT32_MIN ? sum : total;
    }
}

static NF_VECTOR void add_floats(int32_t *restrict sums, const uint32_t *restrict lanes, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        sums[i] = (int32_t)nf_add_float_bits((uint32_t)sums[i], __builtin_bswap32(lanes[i]));
    }
}

/* Returns whether a sum is saturated. */
static NF_VECTOR int copy_sums(uint32_t *restrict lanes, const int32_t *restrict sums, int64_t count) {
    int saturated = 0;
    for (int64_t i = 0; i < count; i++) {
        saturated |= sums[i] == INT32_MAX || sums[i] == INT32_MIN;
        lanes[i] = __builtin_bswap32((uint32_t)sums[i]);
    }
    return saturated;
}

/* Returns whether the contributions of the first `count` children are in. */
static int has_all(const uint64_t *bitmap, int64_t count) {
    int64_t whole = count / WORD_BITS, rest = count % WORD_BITS;
    for (int64_t i = 0; i < whole; i++)
        if (bitmap[i] != UINT64_MAX) return 0;
    return !rest || !(~bitmap[whole] & (((uint64_t)1 << rest) - 1));
}

static void make_packet(const struct nf_slot_pool *p, int64_t slot, const struct header *h, struct header *result) {
    *result = *h;
    if (p->role == NF_ROOT) result->version_kind = VERSION_KIND_RESULT;
    result->flags = p->flags[slot];
    result->exponent = p->exponents[slot];
    result->reserved = h->reserved & ROCE_BIT ? h->reserved : 0;
    if (is_short(result)) return;
    int saturated = copy_sums(lanes_of(result), p->sums + slot * p->lanes, p->lanes);
    if (saturated && !(result->flags & FLAG_FLOATS)) result->flags |= FLAG_OVERFLOW;
}

static void update_seal(struct nf_slot_seal *s, const struct header *h, int is_duplicate) {
    if (!is_duplicate) s->count = (uint8_t)((s->count + (h->reserved & COUNT_MASK)) & COUNT_MASK);
    s->is_requested |= (h->flags & FLAG_SEAL) != 0;
}

/* Returns whether the sum has enough contributions. */
static int seal(const struct nf_slot_pool *p, struct nf_slot_seal *s, const uint64_t *bitmap) {
    if (!s->is_sealed) s->is_sealed = s->is_requested ? s->count >= p->min_contributions : has_all(bitmap, p->direct_children);
    return s->is_sealed;
}

/* Handles a contribution that is late: the sum was sealed, or its slot is reused. */
static enum nf_verdict answer_late(struct nf_slot_pool *p, int64_t slot, const struct header *h, int marked,
                                   struct header *result) {
    if (__builtin_bswap32(h->tag) < p->tags[slot]) {
        *result = *h;
        memmove(lanes_of(result), h + 1, (size_t)(4 * p->lanes));
        result->version_kind = VERSION_KIND_RESULT;
        result->flags = FLAG_QUORUM | FLAG_SLOT_REUSED;
        result->reserved = 0;
        return NF_SLOT_REUSED;
    }
    p->flags[slot] |= (uint8_t)((h->flags | (marked ? FLAG_CONGESTION : 0)) & FLAG_CONGESTION);
    make_packet(p, slot, h, result);
    result->flags |= FLAG_QUORUM | FLAG_SEAL;
    result->reserved = p->seals[slot].count;
    return NF_LATE;
}

static enum nf_verdict sent(const struct nf_slot_pool *p, int was_complete) {
    if (p->role == NF_ROOT) return was_complete ? NF_RESULT_RESENT : NF_RESULT_SENT;
    return was_complete ? NF_SUM_RESENT : NF_SUM_SENT;
}

enum nf_verdict nf_slot_pool_accumulate(struct nf_slot_pool *p, int64_t child, const struct header *h, int marked,
                                        struct header *result) {
    int64_t slot = __builtin_bswap16(h->slot);
    if (slot >= p->slots) return NF_BAD_SLOT;
    uint32_t tag = __builtin_bswap32(h->tag);
    struct nf_slot_seal *s = p->min_contributions && h->flags & FLAG_QUORUM ? p->seals + slot : NULL;
    if (tag < p->tags[slot]) return s ? answer_late(p, slot, h, marked, result) : NF_STALE_CHUNK;
    uint64_t *bitmap = p->bitmaps + slot * p->words, *word = bitmap + child / WORD_BITS, bit = (uint64_t)1 << child % WORD_BITS;
    const uint32_t *lanes = (const uint32_t *)(h + 1);
    int32_t *sums = p->sums + slot * p->lanes;
    uint8_t flags = (uint8_t)((h->flags | (marked ? FLAG_CONGESTION : 0)) & STICKY_FLAGS);
    int is_newer = tag > p->tags[slot], is_duplicate = !is_newer && (*word & bit);
    if (s && is_newer) *s = (struct nf_slot_seal){0, 0, 0};
    if (s && s->is_sealed && !is_duplicate) return answer_late(p, slot, h, marked, result);
    if (is_newer) {
        p->tags[slot] = tag;
        memset(bitmap, 0, (size_t)p->words * sizeof *bitmap);
        p->flags[slot] = flags;
        p->exponents[slot] = h->exponent;
        if (is_short(h))
            memset(sums, 0, (size_t)p->lanes * sizeof *sums);
        else
            claim_lanes(sums, lanes, p->lanes);
    } else {
        p->flags[slot] |= flags;
        if (h->exponent > p->exponents[slot]) p->exponents[slot] = h->exponent;
        if (!is_duplicate && !is_short(h)) (p->flags[slot] & FLAG_FLOATS ? add_floats : add)(sums, lanes, p->lanes);
    }
    *word |= bit;
    int was_complete = s ? s->is_sealed : is_duplicate;
    if (s) update_seal(s, h, is_duplicate);
    if (!(s ? seal(p, s, bitmap) : has_all(bitmap, p->children))) return is_duplicate ? NF_DUPLICATE : NF_ACCUMULATED;
    make_packet(p, slot, h, result);
    if (s) {
        result->flags |= FLAG_QUORUM;
        result->reserved = s->count;
    }
    return sent(p, was_complete);
}
