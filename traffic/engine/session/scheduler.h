/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Starts calls and their parts in order, docs/reference/protocol.md, section 5.3. */

#ifndef NETFOLD_SCHEDULER_H
#define NETFOLD_SCHEDULER_H

#include "state.h"

/* Starts the handover of a call. */
struct step start_handover(struct nf_core *core, struct nf_call *call);

/* Starts the next call that waits, if there may be one more in flight. */
struct step start_next_call(struct nf_core *core);

/* Continues the first call, which was started and is opened. */
struct step advance_call(struct nf_core *core, struct nf_call *call, double now);

/* Returns whether advance_call can continue the first call now. */
int can_advance(const struct nf_core *core, const struct nf_call *call);

#endif
