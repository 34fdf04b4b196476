/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Streams, which are flows and the channels of jobs: their progress at given rates, the pace of TCP, a flow's completion. */
#ifndef SF_STREAMS_H
#define SF_STREAMS_H

#include "state.h"

#pragma GCC visibility push(hidden)

/* Starts to send `left`. Sets r->out_of_memory on failure. */
void sf_stream_activate(struct sf_run *r, int64_t stream);

/* Brings `left` and the pace up to r->now at the current rate. */
void sf_stream_advance(struct sf_run *r, int32_t stream);

/* Schedules the completion of `left` at the current rate. */
void sf_stream_schedule(struct sf_run *r, int32_t stream);

/* Starts a flow. One that fits in TCP's first window is complete at once. */
void sf_flow_start(struct sf_run *r, int64_t flow);

/* Updates the pace after the rate has changed. A rate below the previous one, or below that of the empty path, means that a
 * queue has grown until the window was halved; the remaining window allows a higher rate without the queue. (DCTCP halves
 * as Reno does while it is new: its estimate of marks starts at 1 and decays over 16 round trips.) A new flow that meets a
 * standing queue is marked in its first round. */
void sf_flow_update_pace(struct sf_run *r, int32_t flow);

/* Writes when the flow's last byte arrives, and the bytes that it has sent on its links. */
void sf_flow_complete(struct sf_run *r, int64_t flow);

#pragma GCC visibility pop

#endif
