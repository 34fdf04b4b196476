/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* How the workers come together in a new epoch, docs/protocol.md, section 5.3: each says in the resume chunk in which call it is;
 * what some have and others lack is handed over (hand.h). */

#ifndef NETFOLD_RESUME_H
#define NETFOLD_RESUME_H

#include "call.h"

/* The resume chunk; gives whether there is more to do at once. */
int resume_come_together(struct nf_core *core);

/* Begins the next call that is handed over; 0: a worker that lacks it may still have to be asked for it by its program. */
int resume_hand_on(struct nf_core *core);

/* What the resume chunk carries, and what its result is taken for. */
void resume_fill(const struct nf_call *c, struct header *h);
void resume_take(struct nf_call *c, const struct tree *t, struct header *h);

#endif
