/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The last calls of a worker, for the explanation of a job that hangs: a ring of records, each written in place when its call is
 * submitted, starts and ends. */

#ifndef NETFOLD_CALL_LOG_H
#define NETFOLD_CALL_LOG_H

#include <stdint.h>

enum { NF_CALL_LOG = 4096 }; /* calls */

/* Times are seconds of the core's clock; 0: not yet. */
struct nf_call_record {
    int64_t number; /* in the job; -1: not started */
    int64_t bytes, context;
    int32_t outstanding; /* results that it lacked when it ended; of a call that is not finished: lacks */
    int32_t retransmits; /* of this worker while the call was started */
    uint8_t kind, dtype, state, status; /* enum nf_kind, nf_dtype, call_state, nf_status */
    uint16_t trees, epoch; /* of its last attempt */
    double submitted, started, ended;
};

struct call_log {
    int64_t count; /* calls submitted so far: the record of number `count - 1` is the last */
    struct nf_call_record records[NF_CALL_LOG];
};

struct nf_core;
struct nf_call;

void call_log_submitted(struct nf_core *core, struct nf_call *call);
void call_log_started(struct nf_core *core, struct nf_call *call);
void call_log_ended(struct nf_core *core, const struct nf_call *call);

/* Brings the records of unfinished calls up to date. */
void call_log_refresh(struct nf_core *core);

/* Copies the newest records, at most `capacity`, in the order of submission. Returns their number. */
int64_t call_log_copy(struct nf_core *core, struct nf_call_record *to, int64_t capacity);

#endif
