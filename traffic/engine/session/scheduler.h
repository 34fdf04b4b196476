/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Starts calls and their parts in order, docs/reference/protocol.md, section 5.3. Functions that return int64_t return a step (state.h). */

#ifndef NETFOLD_SCHEDULER_H
#define NETFOLD_SCHEDULER_H

#include "state.h"

/* Appends a copy of the segment to a tree. NF_PENDING, NF_NO_MEMORY, or NF_EXHAUSTED: the epoch has too few places left. */
int64_t schedule_segment(struct tree *t, const struct segment *of);

/* Starts the handover of a call. */
int64_t start_handover(struct nf_core *core, struct nf_call *call);

/* Starts the next call that waits, if there may be one more in flight. */
int64_t start_next_call(struct nf_core *core);

/* Continues the first call, which was started and is opened. */
int64_t advance_call(struct nf_core *core, struct nf_call *call, double now);

/* Whether the first call can be continued by advance_call now. */
int can_advance(const struct nf_call *call);

#endif
