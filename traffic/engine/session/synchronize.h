/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The start of an epoch, docs/reference/protocol.md, section 5.3: the resume exchange, then the handover of results that some
 * workers lack. */

#ifndef NETFOLD_SYNCHRONIZE_H
#define NETFOLD_SYNCHRONIZE_H

#include "state.h"

/* Resets the exchange: a new epoch was assigned, or the old one ended. */
void synchronize_reset(struct nf_core *core);

/* Advances the resume exchange. */
struct step synchronize(struct nf_core *core);

/* Starts the next handover. Returns STEP_WAIT if its program has not submitted the call yet. */
struct step start_next_handover(struct nf_core *core);

#endif
