/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "slots.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

struct slot {
    uint32_t tag;
    uint8_t flags, exponent;
    uint16_t missing; /* children that are not in */
    uint64_t words[]; /* the bitmap; behind it the lanes */
};

static int64_t words_of(const struct np_pool *p) { return (p->children + WORD_BITS - 1) / WORD_BITS; }

static int32_t *lanes_of(const struct np_pool *p, struct slot *s) { return (int32_t *)(s->words + words_of(p)); }

int np_pool_start(struct np_pool *p, int64_t slots, int64_t lanes, int64_t children, int root) {
    *p = (struct np_pool){.slots = slots, .lanes = lanes, .children = children, .root = root};
    p->stride = ((int64_t)sizeof(struct slot) + 8 * words_of(p) + 4 * lanes + 7) / 8 * 8;
    p->memory = calloc((size_t)slots, (size_t)p->stride);
    return p->memory ? 0 : -1;
}

void np_pool_free(struct np_pool *p) {
    free(p->memory);
    p->memory = NULL;
}

/* Saturating, and the rails absorb. */
static int32_t add(int32_t sum, int32_t lane) {
    if (sum == INT32_MAX || sum == INT32_MIN) return sum;
    int32_t total;
    if (!__builtin_add_overflow(sum, lane, &total)) return total;
    return lane > 0 ? INT32_MAX : INT32_MIN;
}

static uint8_t rail_flag(const int32_t *lanes, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (lanes[i] == INT32_MAX || lanes[i] == INT32_MIN) return NP_OVERFLOW;
    return 0;
}

static void claim(struct np_pool *p, struct slot *s, uint32_t tag) {
    if (s->tag == 0 || s->missing == 0) p->open++; /* else an open one is given up */
    if (p->open > p->most_open) p->most_open = p->open;
    s->tag = tag;
    s->flags = s->exponent = 0;
    s->missing = (uint16_t)p->children;
    memset(s->words, 0, (size_t)(8 * words_of(p)));
}

static enum np_verdict judge(struct np_pool *p, uint32_t tag, int64_t slot, int64_t bit, uint8_t flags, uint8_t exponent,
                             const int32_t *lanes, struct np_sum *sum) {
    if (slot >= p->slots || bit < 0 || bit >= p->children) return NP_BAD_SLOT;
    struct slot *s = (struct slot *)(p->memory + slot * p->stride);
    if (tag < s->tag) return NP_STALE_CHUNK;
    int32_t *sums = lanes_of(p, s);
    uint64_t mask = (uint64_t)1 << bit % WORD_BITS, *word = &s->words[bit / WORD_BITS];
    int fresh = tag > s->tag;
    if (fresh) claim(p, s, tag);
    int repeated = (*word & mask) != 0;
    s->flags |= flags & NP_FLAGS;
    if (exponent > s->exponent) s->exponent = exponent;
    if (fresh)
        memcpy(sums, lanes, (size_t)(4 * p->lanes));
    else if (!repeated)
        for (int64_t i = 0; i < p->lanes; i++) sums[i] = add(sums[i], lanes[i]);
    if (!repeated) {
        *word |= mask;
        if (--s->missing == 0) p->open--;
    }
    if (s->missing) return repeated ? NP_DUPLICATE : NP_ABSORBED;
    *sum = (struct np_sum){sums, s->flags | rail_flag(sums, p->lanes), s->exponent};
    if (p->root) return repeated ? NP_RESULT_REPEATED : NP_RESULT_SENT;
    return repeated ? NP_SUM_REPEATED : NP_SUM_SENT;
}

enum np_verdict np_pool_gradient(struct np_pool *p, uint32_t tag, int64_t slot, int64_t bit, uint8_t flags,
                                 uint8_t exponent, const int32_t *lanes, struct np_sum *sum) {
    sum->lanes = NULL;
    enum np_verdict verdict = judge(p, tag, slot, bit, flags, exponent, lanes, sum);
    p->verdicts[verdict]++;
    return verdict;
}

int np_pool_trace(int64_t slots, int64_t lanes, int64_t children, int root, int64_t count, const uint32_t *tags,
                  const int64_t *at, const int64_t *bits, const uint8_t *flags, const uint8_t *exponents,
                  const int32_t *values, uint8_t *verdicts, uint8_t *out_flags, uint8_t *out_exponents, int32_t *sums) {
    struct np_pool pool;
    if (np_pool_start(&pool, slots, lanes, children, root)) return -1;
    for (int64_t i = 0; i < count; i++) {
        struct np_sum sum;
        verdicts[i] = (uint8_t)np_pool_gradient(&pool, tags[i], at[i], bits[i], flags[i], exponents[i], values + i * lanes, &sum);
        if (!sum.lanes) continue;
        out_flags[i] = sum.flags;
        out_exponents[i] = sum.exponent;
        memcpy(sums + i * lanes, sum.lanes, (size_t)(4 * lanes));
    }
    np_pool_free(&pool);
    return 0;
}
