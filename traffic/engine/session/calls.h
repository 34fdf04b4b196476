/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The queue of calls, and the results that are retained for other workers. Calls finish here only. */

#ifndef NETFOLD_CALLS_H
#define NETFOLD_CALLS_H

#include "state.h"

void calls_append(struct nf_core *core, struct nf_call *call);

/* The first call has its result: it finishes with `status`, and is retained. */
void calls_finish_first(struct nf_core *core, int64_t status);

static inline int lacks_closing_only(const struct nf_call *call) {
    return call->progress.state == CALL_CLOSING || call->progress.is_ready;
}

/* A first call that only waits for its closing chunk has its result: it finishes. */
void calls_finish_closing(struct nf_core *core);

/* The epoch ends. A call that only waits for its closing chunk finishes; a scatter is ready, E9. */
void calls_end_epoch(struct nf_core *core);

/* Ends all calls without results: the first one with this status, the others as aborted. */
void calls_end_all(struct nf_core *core, int64_t status);

/* All workers have the results of the calls before `number`. */
void calls_mark_stable(struct nf_core *core, int64_t number);

/* Releases the results that no worker can need any more, and the calls whose scales are learned. */
void calls_release_stable(struct nf_core *core);

/* Nothing is in flight any more: calls that are not finished wait again. */
void calls_reset(struct nf_core *core);

void calls_free(struct nf_core *core);

#endif
