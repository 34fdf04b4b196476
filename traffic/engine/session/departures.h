/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The end of calls after workers have left, docs/reference/protocol.md, section 5.7: a call that a worker finished before it left
 * has all contributions and is completed; later calls are not. */

#ifndef NETFOLD_DEPARTURES_H
#define NETFOLD_DEPARTURES_H

#include "state.h"

/* Returns the step of the first call after workers have left; STEP_WAIT: departures do not concern it. */
struct step departures_step(struct nf_core *core);

#endif
