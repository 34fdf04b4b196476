/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What a call has in common with others of its kind: the fingerprint that workers compare in its opening, and the scales of its
 * first rows, as an earlier call of its kind had them. docs/protocol.md, sections 5.3 and 6. */

#ifndef NETFOLD_KIND_H
#define NETFOLD_KIND_H

#include "call.h"
#include "predict.h"

/* Takes the fingerprint of what all workers have in common before anything is predicted. */
void kind_sign(struct nf_call *c);

/* The same, and takes the scales of the first rows of each tree from an earlier call of its kind, if there is one. */
void kind_predict(struct nf_call *c, struct nf_predictions *p, const struct tree *trees);
void kind_learn(const struct nf_call *c, struct nf_predictions *p, const struct tree *trees);

/* Of 48 bits that differ, but for one case in 2^48, if anything does that workers have to have in common. */
static inline uint32_t kind_print_lane(const struct nf_call *c, int lane) { return (uint32_t)(c->print >> 16 * lane & 0xFFFF); }

/* A step of float64's exponent byte is eight bits. */
static inline struct nf_tolerance kind_tolerance(const struct nf_call *c) {
    return c->codec.form == NF_QUADS ? (struct nf_tolerance){0, 0, 0} : (struct nf_tolerance){1, 4, 31};
}

#endif
