/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the largest exponents of calls of a kind (size, dtype, operation, scheme) were when it was done before: docs/protocol.md,
 * section 6. The same at all workers, as it is filled from results alone, in the order of calls.
 *
 * Which of the earlier calls of a kind the next one is like is a question of the program: buckets of one size take turns. So
 * for each distance back it is known how often a prediction by it would have failed lately. */

#ifndef NETFOLD_PREDICT_H
#define NETFOLD_PREDICT_H

#include "numbers.h"

enum {
    NF_KINDS_MAX = 256,
    NF_TURNS_MAX = 32 /* calls of a kind that are remembered, and how far back the one may be that is alike */
};

/* What a scale allows for that was predicted, in steps of the exponent byte: how much larger magnitudes may be than the last
 * time, and how much smaller than that before the chunk comes again. Below `least` all are scaled alike. */
struct nf_tolerance {
    int margin, slack, least;
};

struct nf_kind {
    uint64_t key;
    int64_t used_in;                /* the last call of the kind */
    int64_t turns;                  /* calls of it that began */
    int64_t count;                  /* bytes of each */
    int64_t learned[NF_TURNS_MAX];  /* by turn modulo: 1 + the turn whose bytes are there; 0: none */
    int64_t wrong[NF_TURNS_MAX];    /* by distance back, from 1: a fading mean of the bytes that it would have failed in */
    uint8_t *bytes;
};

struct nf_predictions {
    struct nf_kind kinds[NF_KINDS_MAX];
    int64_t count;
};

void nf_predictions_forget(struct nf_predictions *p);

/* A call of the kind begins, with so many bytes: gives which turn it is of the kind's. The kind that was used the longest ago
 * makes room. -1: no memory. */
int64_t nf_predictions_turn(struct nf_predictions *p, uint64_t key, int64_t count, int64_t number);

/* What is predicted for it; NULL: nothing. */
const uint8_t *nf_predictions_find(const struct nf_predictions *p, uint64_t key, int64_t turn);

/* Where to write what was seen in a turn, NULL: its kind is forgotten; and after that. */
uint8_t *nf_predictions_room(struct nf_predictions *p, uint64_t key, int64_t count, int64_t turn);
void nf_predictions_learn(struct nf_predictions *p, uint64_t key, int64_t turn, struct nf_tolerance tolerance);

/* The exponent byte to scale by where `seen` was the largest one the last time. */
static inline uint8_t nf_predicted(struct nf_tolerance t, uint8_t seen) {
    int byte = seen + t.margin > t.least ? seen + t.margin : t.least;
    return (uint8_t)(byte < NF_NOT_FINITE ? byte : NF_NOT_FINITE - 1);
}

/* Whether the largest one now is so much smaller, or no number, that what came at that scale has to come again. */
static inline int nf_mispredicted(struct nf_tolerance t, uint8_t byte, uint8_t seen) {
    return seen == NF_NOT_FINITE || (seen && byte > t.least && seen + t.slack < byte);
}

#endif
