/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A core with sockets, a clock and threads. The thread in nf_engine_wait() runs the I/O loop; for background calls a thread of the
 * engine does. All functions may be called from any thread. */

#ifndef NETFOLD_ENGINE_H
#define NETFOLD_ENGINE_H

#include "../session/core.h"
#include "link.h"

struct nf_engine;

/* Returns the fingerprint of the sources that the library was built of (recipe.py), or "". */
NF_API const char *nf_sources(void);

/* Returns NULL if there is no memory, or no file descriptors. */
NF_API struct nf_engine *nf_engine_create(void);

/* Ends all calls; all waiting threads return. */
NF_API void nf_engine_stop(struct nf_engine *e);

/* Frees the engine, which no thread may use any more. */
NF_API void nf_engine_destroy(struct nf_engine *e);

/* Closes the sockets; no packet moves until nf_engine_assign. */
NF_API void nf_engine_close_sockets(struct nf_engine *e);

/* Starts an epoch over these connected, non-blocking sockets (endpoint i is fds[i]), which the engine closes. Returns 0 or an
 * errno. */
NF_API int nf_engine_assign(struct nf_engine *e, const struct nf_assignment *assignment, const int32_t *fds, int64_t count);

/* Starts an epoch over a link, whose descriptor stays the caller's: the worker's UDP port is `port`, endpoint i is peers[i]. */
NF_API int nf_engine_assign_link(struct nf_engine *e, const struct nf_assignment *assignment, const struct nf_link_end *end,
                                 int64_t port, const struct sockaddr_in *peers, int64_t count);

NF_API void nf_engine_set_departures(struct nf_engine *e, int64_t epoch, const struct nf_departures *departures);

/* Submits a call. With `background` nf_engine_next_completed returns it when it is finished, else a thread has to
 * nf_engine_wait for it. Returns NULL if there is no memory. */
NF_API struct nf_call *nf_engine_submit(struct nf_engine *e, const struct nf_request *request, int64_t background);

/* Runs the I/O loop until the call is finished, CLOCK_MONOTONIC is `until`, a signal arrives, or another epoch is needed. Returns
 * the call's status. */
NF_API int64_t nf_engine_wait(struct nf_engine *e, struct nf_call *call, double until);

/* Returns a finished background call; waits for one up to `until`. Returns NULL if there is none, another epoch is needed, or
 * the engine was stopped and there are no more. Calls that are finished at the same time are returned in the order of
 * submission. */
NF_API struct nf_call *nf_engine_next_completed(struct nf_engine *e, double until);

/* Copies the outcome of a finished call, and forgets the call. */
NF_API void nf_engine_release(struct nf_engine *e, struct nf_call *call, struct nf_outcome *outcome);

NF_API void nf_engine_abort(struct nf_engine *e);
NF_API void nf_engine_fail_epoch_waiters(struct nf_engine *e);
NF_API void nf_engine_totals(struct nf_engine *e, struct nf_totals *totals);

/* Fills up to `capacity` reports; returns the number of trees. */
NF_API int64_t nf_engine_reports(struct nf_engine *e, struct nf_tree_report *reports, int64_t capacity);

/* Copies the records of the newest calls, as nf_core_call_log. */
NF_API int64_t nf_engine_call_log(struct nf_engine *e, struct nf_call_record *records, int64_t capacity);

/* Returns the errno of a socket that failed and so ended all calls, or 0. */
NF_API int64_t nf_engine_error(struct nf_engine *e);

/* Returns the errors that sockets have survived since the start: ICMP errors, and packets that the kernel dropped. */
NF_API int64_t nf_engine_socket_errors(struct nf_engine *e);

#endif
