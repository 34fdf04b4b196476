/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The lists of the channels in flight, in the order of their last transmissions. */

#ifndef NETFOLD_IN_FLIGHT_H
#define NETFOLD_IN_FLIGHT_H

#include "tree_state.h"

/* Appends a channel that is sent `now`. */
void in_flight_append(struct tree *t, int32_t channel, double now);
void in_flight_remove(struct tree *t, int32_t channel);

static inline void in_flight_move_to_end(struct tree *t, int32_t channel, double now) {
    in_flight_remove(t, channel);
    in_flight_append(t, channel, now);
}

#endif
