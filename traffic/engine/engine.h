/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A core with sockets, a clock and threads around it. Whoever waits for a call moves the packets meanwhile; calls in the
 * background are moved by a thread of the engine's own. All functions may be called from any thread. */

#ifndef NETFOLD_ENGINE_H
#define NETFOLD_ENGINE_H

#include "core.h"

struct nf_engine;

/* What this was built of (recipe.py's fingerprint), or "". */
const char *nf_sources(void);

/* NULL: the system gives no memory or descriptors. */
struct nf_engine *nf_engine_create(void);

/* Ends all calls, and lets go whoever waits. */
void nf_engine_stop(struct nf_engine *e);

/* Nobody may use the engine any more. */
void nf_engine_destroy(struct nf_engine *e);

/* Closes the sockets; nothing moves until nf_engine_assign. */
void nf_engine_retire(struct nf_engine *e);

/* Goes on in a new epoch over these connected, non-blocking sockets (endpoint i is fds[i]), which the engine closes. Gives
 * 0, or an errno. */
int nf_engine_assign(struct nf_engine *e, const struct nf_assignment *assignment, const int32_t *fds, int64_t count);

/* `background`: nf_engine_next tells when it is over. Else somebody has to nf_engine_wait. NULL: no memory. */
struct nf_call *nf_engine_submit(struct nf_engine *e, const struct nf_request *request, int64_t background);

/* Moves packets until the call is over, CLOCK_MONOTONIC is `until`, a signal came, or another epoch is needed; gives its
 * status. */
int64_t nf_engine_wait(struct nf_engine *e, struct nf_call *call, double until);

/* A call in the background that is over, waiting for one up to `until`; NULL: none, another epoch is needed, or the engine
 * was stopped and there are no more. Calls that are over at once come in the order of submission. */
struct nf_call *nf_engine_next(struct nf_engine *e, double until);

/* Copies the outcome of a call that is over, and forgets the call. */
void nf_engine_release(struct nf_engine *e, struct nf_call *call, struct nf_outcome *outcome);

void nf_engine_abort(struct nf_engine *e);
void nf_engine_no_epoch(struct nf_engine *e);
void nf_engine_totals(struct nf_engine *e, struct nf_totals *totals);

/* Fills in up to `room` reports, and gives how many trees there are. */
int64_t nf_engine_reports(struct nf_engine *e, struct nf_tree_report *reports, int64_t room);

/* The errno of a socket that failed, 0: none. It ended all calls. */
int64_t nf_engine_error(struct nf_engine *e);

#endif
