/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Acknowledgments as samples of RTT and congestion. */

#ifndef NETFOLD_ACKS_H
#define NETFOLD_ACKS_H

#include "tree_state.h"

/* Records that the chunk in flight on a channel has its result. */
void acks_record(struct tree *t, int64_t channel, int marked, double now);

/* Updates RTT and window by the recorded results, if they are a whole window. */
void acks_update_window(struct tree *t);

#endif
