/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the largest exponents of calls of a kind (size, dtype, operation, scheme) were when it was done last: docs/protocol.md,
 * section 6. The same at all workers, as it is filled from results alone, in the order of calls. */

#ifndef NETFOLD_PREDICT_H
#define NETFOLD_PREDICT_H

#include "numbers.h"

enum { NF_KINDS_MAX = 256 };

/* What a scale allows for that was predicted, in steps of the exponent byte: how much larger magnitudes may be than the last
 * time, and how much smaller than that before the chunk comes again. Below `least` all are scaled alike. */
struct nf_tolerance {
    int margin, slack, least;
};

struct nf_kind {
    uint64_t key;
    int64_t learned_in; /* the call */
    int64_t count;
    uint8_t *bytes;
};

struct nf_predictions {
    struct nf_kind kinds[NF_KINDS_MAX];
    int64_t count;
};

void nf_predictions_forget(struct nf_predictions *p);

/* NULL: no call of the kind with so many bytes is known. */
const uint8_t *nf_predictions_find(const struct nf_predictions *p, uint64_t key, int64_t count);

/* Where to write what was seen in call `number`; the kind that was learned the longest ago makes room. NULL: no memory. */
uint8_t *nf_predictions_learn(struct nf_predictions *p, uint64_t key, int64_t count, int64_t number);

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
