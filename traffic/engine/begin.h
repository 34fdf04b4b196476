/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* How calls begin, and go on: what their parts and laps are becomes segments of the trees. docs/protocol.md, section 5.3. Each
 * gives 0 if the call cannot go on: it is over, or waits for an epoch. */

#ifndef NETFOLD_BEGIN_H
#define NETFOLD_BEGIN_H

#include "call.h"

/* Gives a tree chunks of a part. */
int begin_segment(struct nf_core *core, struct tree *t, const struct segment *of);

/* Gives the trees what a part consists of. */
int begin_part(struct nf_core *core, struct nf_call *call, enum part part);

/* Begins a call with its opening and `part`. */
int begin_call(struct nf_core *core, struct nf_call *call, enum part part);

/* Lets a call that is balanced go on; 0 as well if there is no more to do at once. */
int begin_deal(struct nf_core *core, struct nf_call *call, double now);

/* Begins the next call that waits, if there is room for one; 0 as well if not. */
int begin_next(struct nf_core *core);

#endif
