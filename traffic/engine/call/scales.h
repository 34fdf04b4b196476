/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Scales of a call's first rows, predicted by earlier calls of its profile, docs/reference/protocol.md, section 6. */

#ifndef NETFOLD_SCALES_H
#define NETFOLD_SCALES_H

#include "call.h"
#include "scale_predictor.h"

/* Predicts the scales of the first rows of each tree, if an earlier call allows it. */
void scales_predict(struct nf_call *c, struct nf_scale_predictor *p);

/* Teaches the predictor the exponents that a finished call observed. */
void scales_learn(const struct nf_call *c, struct nf_scale_predictor *p);

/* A step of float64's exponent byte is eight bits. */
static inline struct nf_tolerance scales_tolerance(const struct nf_call *c) {
    return c->rows.codec.format == NF_LANE_FIXED64 ? (struct nf_tolerance){0, 0, 0} : (struct nf_tolerance){1, 4, 31};
}

#endif
