/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of a rank, one at a time in their order. Nonblocking ones are made by a thread; a blocking one waits for those before it. */

#ifndef NETFOLD_MPI_QUEUE_H
#define NETFOLD_MPI_QUEUE_H

#include "call.h"

struct nm_result nm_queue_run(const struct nm_call *call);

/* 0, and a request that is complete when the call is; else an error of MPI. `on_error`: the error code of a call that failed. */
int nm_queue_start(const struct nm_call *call, int (*on_error)(const struct nm_result *), MPI_Request *request);

/* Until the nonblocking calls of a communicator are done. */
void nm_queue_finish(const struct nm_communicator *communicator);

/* Ends the thread, after its calls. */
void nm_queue_stop(void);

#endif
