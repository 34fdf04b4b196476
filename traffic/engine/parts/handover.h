/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* By a handover workers that have the result of a call transfer it in a new epoch to those that lack it,
 * docs/reference/protocol.md, section 5.3. It carries the array and how the call ended, as numbers of 16 bits. Every holder
 * adds it, so the sum is a multiple of it. */

#ifndef NETFOLD_HANDOVER_H
#define NETFOLD_HANDOVER_H

#include "parts.h"

/* Sets the call up for the handover of its result. `contributors`: workers that are in the call; `holders` of them have it,
 * `is_holder`: this worker does. */
void handover_prepare(struct nf_call *c, const struct nf_assignment *a, int64_t contributors, int64_t holders, int is_holder);

/* Completes the call, whose result is here. */
void handover_finish(struct nf_call *c);

/* Returns the number of chunks that the result takes, all in the first tree. */
int64_t handover_chunks(const struct nf_call *c, int64_t lanes);

#endif
