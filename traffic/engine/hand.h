/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A result that some workers have and others lack goes over in a new epoch, docs/protocol.md, section 5.3: the array, and what
 * the call ended in, as numbers of 16 bits. Whoever has it adds it, so the sum is so many times it. */

#ifndef NETFOLD_HAND_H
#define NETFOLD_HAND_H

#include "call.h"

/* Begins to hand the call's result over, which `strangers` let pass; `holding`: this worker is one of the `holders`. */
void hand_begin(struct nf_call *c, const struct nf_assignment *a, int64_t strangers, int64_t holders, int holding);

/* The result is here. */
void hand_end(struct nf_call *c);

/* How many chunks it takes, all in the first tree; what a chunk carries, and what its result is taken for. */
int64_t hand_chunks(const struct nf_call *c, const struct tree *t);
void hand_fill(const struct nf_call *c, const struct tree *t, int64_t chunk, struct header *h);
void hand_take(const struct nf_call *c, const struct tree *t, int64_t chunk, struct header *h);

#endif
