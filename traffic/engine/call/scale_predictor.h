/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Predicts the exponents of a call by those of earlier calls of the same profile (size, dtype, operation, scheme),
 * docs/reference/protocol.md, section 6. Equal at all workers: it learns from results alone, in the order of calls.
 *
 * Which earlier call is like the next one depends on the program: buckets of one size alternate. So a score for each distance
 * back says how often a prediction by it would have missed lately. */

#ifndef NETFOLD_SCALE_PREDICTOR_H
#define NETFOLD_SCALE_PREDICTOR_H

#include "../numerics/quantize.h"

enum {
    NF_MAX_PROFILES = 256,
    NF_MAX_HISTORY = 32 /* occurrences of a profile that are remembered: the largest distance */
};

/* The tolerance of a predicted scale, in steps of the exponent byte. `margin`: how much larger magnitudes may be than the
 * predicting ones; `slack`: how much smaller they may be than that before the row is re-encoded. Below `min_exp` all rows are
 * scaled alike. */
struct nf_tolerance {
    int margin, slack, min_exp;
};

struct nf_call_profile {
    uint64_t key;
    int64_t used_in;                    /* number of its last call */
    int64_t occurrences;                /* calls that began */
    int64_t count;                      /* bytes of each */
    int64_t learned[NF_MAX_HISTORY];    /* by occurrence modulo: 1 + the occurrence whose bytes are stored; 0: none */
    int64_t miss_score[NF_MAX_HISTORY]; /* by distance, from 1: decaying mean of the bytes that it would have missed */
    uint8_t *bytes;
};

struct nf_scale_predictor {
    struct nf_call_profile profiles[NF_MAX_PROFILES];
    int64_t count;
};

void nf_predictor_clear(struct nf_scale_predictor *p);

/* Starts a call of the profile with `count` exponents and returns its occurrence, or -1 if there is no memory. May evict the
 * profile that was used least recently. */
int64_t nf_predictor_next_occurrence(struct nf_scale_predictor *p, uint64_t key, int64_t count, int64_t number);

/* Returns the predicted exponents, or NULL if there are none. */
const uint8_t *nf_predictor_predict(const struct nf_scale_predictor *p, uint64_t key, int64_t occurrence);

/* Returns where to write the exponents observed in an occurrence, for nf_predictor_learn to use, or NULL if the profile was
 * evicted. */
uint8_t *nf_predictor_buffer(struct nf_scale_predictor *p, uint64_t key, int64_t count, int64_t occurrence);
void nf_predictor_learn(struct nf_scale_predictor *p, uint64_t key, int64_t occurrence, struct nf_tolerance tolerance);

/* Returns the exponent byte to scale by if `observed` was the largest one of the predicting call. */
static inline uint8_t nf_predicted_exp(struct nf_tolerance t, uint8_t observed) {
    int byte = observed + t.margin > t.min_exp ? observed + t.margin : t.min_exp;
    return (uint8_t)(byte < NF_NOT_FINITE ? byte : NF_NOT_FINITE - 1);
}

/* Returns whether the row has to be re-encoded: it is not finite, or too small for the scale `byte`. */
static inline int nf_is_mispredicted(struct nf_tolerance t, uint8_t byte, uint8_t observed) {
    return observed == NF_NOT_FINITE || (observed && byte > t.min_exp && observed + t.slack < byte);
}

#endif
