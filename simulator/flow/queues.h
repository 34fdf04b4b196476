/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Queues of links, derived from the streams that have their bottleneck there. */
#ifndef SF_QUEUES_H
#define SF_QUEUES_H

#include "state.h"

#pragma GCC visibility push(hidden)

#define SF_LOSS_BASED_FILL 0.8 /* of a port's queue: what Reno and CUBIC keep there */

/* Computes a link's queue at r->now and accounts the time since the last update. */
void sf_queue_update(struct sf_run *r, int32_t link);

/* Returns the seconds that a packet of a stream waits in the queues of its links. */
double sf_queue_delay(const struct sf_run *r, int64_t stream);

/* Accounts the time up to r->now and writes the mean queues. */
void sf_queues_close(struct sf_run *r);

#pragma GCC visibility pop

#endif
