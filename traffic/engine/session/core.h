/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The engine without I/O is a worker's side of a job, docs/reference/protocol.md, section 5. Packets and the time go in,
 * packets and the next deadline come out. It has no clock and no threads. Times are seconds of any monotonic clock. It is not
 * thread-safe. */

#ifndef NETFOLD_CORE_H
#define NETFOLD_CORE_H

#include <stddef.h>

#include "../call/request.h"
#include "../numerics/codec.h"
#include "../transport/assignment.h"
#include "../transport/tree_state.h"
#include "../wire/call_numbers.h"
#include "../wire/export.h"
#include "call_record.h"
#include "report.h"

struct nf_core;
struct nf_call;

/* Returns NULL if there is no memory. */
NF_API struct nf_core *nf_core_create(void);
NF_API void nf_core_destroy(struct nf_core *core);

/* Starts an epoch. Calls in flight restart, or are handed over by workers that have their results. Returns 0, or -1 if there is
 * no memory. */
NF_API int nf_core_assign(struct nf_core *core, const struct nf_assignment *assignment, double now);

/* Workers of the job left after the epoch's start. Ignored unless `epoch` is the present one. */
NF_API void nf_core_set_departures(struct nf_core *core, int64_t epoch, const struct nf_departures *departures);

/* Submits a call; copies the array. Calls start and end in the order of submission, NF_MAX_CALLS_IN_FLIGHT at a time. Returns
 * NULL if there is no memory. */
NF_API struct nf_call *nf_core_submit(struct nf_core *core, const struct nf_request *request);

/* Returns the outcome of a call. Unless it is NF_PENDING, the array is final: written, or as it was. */
NF_API const struct nf_outcome *nf_core_outcome(const struct nf_call *call);

/* Forgets a finished call. */
NF_API void nf_core_release(struct nf_core *core, struct nf_call *call);

/* Ends all calls. */
NF_API void nf_core_abort(struct nf_core *core);

/* Ends the calls that wait for another epoch, because there is none. */
NF_API void nf_core_fail_epoch_waiters(struct nf_core *core);

/* A packet of `length` bytes was received; `marked`: with an ECN mark. */
NF_API void nf_core_receive(struct nf_core *core, int64_t endpoint, const uint8_t *packet, int64_t length, int marked,
                            double now);

/* Advances calls, windows and timers. Call this after a batch of packets, and at nf_core_next_deadline. */
NF_API void nf_core_process(struct nf_core *core, double now);

/* Takes the packets to send now, at most `capacity`; returns their number. Their memory is valid until nf_core_generation
 * changes. */
NF_API int64_t nf_core_send(struct nf_core *core, struct nf_out *out, int64_t capacity, double now);

/* Returns when to call nf_core_process if nothing is received. */
NF_API double nf_core_next_deadline(struct nf_core *core, double now);

/* Returns the delay before the next socket read: until a quarter of the chunks in flight can return at the pacing rate, at most
 * timing.ack_coalescing; 0: none. */
NF_API double nf_core_coalescing_delay(const struct nf_core *core);

NF_API int64_t nf_core_generation(const struct nf_core *core);
NF_API struct nf_totals nf_core_totals(const struct nf_core *core);
/* Copies the records of the newest calls, at most `capacity`, in the order of submission. Returns their number. */
NF_API int64_t nf_core_call_log(struct nf_core *core, struct nf_call_record *to, int64_t capacity);

NF_API int64_t nf_core_trees(const struct nf_core *core);
NF_API struct nf_tree_report nf_core_report(const struct nf_core *core, int64_t tree);

#endif
