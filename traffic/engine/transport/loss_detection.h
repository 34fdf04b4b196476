/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Loss detection, docs/reference/protocol.md, section 5.2: only the oldest chunk of a flight is ever retransmitted. */

#ifndef NETFOLD_LOSS_DETECTION_H
#define NETFOLD_LOSS_DETECTION_H

#include "tree_state.h"

/* Applies the timers: schedules a probe of the oldest chunk, or reduces the window. */
void loss_apply_timers(struct tree *t, double now);

/* Returns whether a chunk that was sent later than the oldest of the flight, by more than the reordering window, is
 * acknowledged. */
int loss_is_overtaken(const struct tree *t, const struct flight *f);

/* Returns the channel whose chunk is to be retransmitted, or NO_CHANNEL. */
int32_t loss_next_channel(const struct tree *t);

/* Returns when loss_apply_timers has something to do if nothing is received. A chunk has to be in flight. */
double loss_next_deadline(const struct tree *t);

#endif
