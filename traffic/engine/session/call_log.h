/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The last calls of a worker, for the explanation of a job that hangs: a ring of records, each written in place when its call is
 * submitted, starts and ends. */

#ifndef NETFOLD_CALL_LOG_H
#define NETFOLD_CALL_LOG_H

#include "state.h"

void call_log_submitted(struct nf_core *core, struct nf_call *call);
void call_log_started(struct nf_core *core, struct nf_call *call);
void call_log_ended(struct nf_core *core, const struct nf_call *call);

/* Brings the records of unfinished calls up to date. */
void call_log_refresh(struct nf_core *core);

/* Copies the newest records, at most `capacity`, in the order of submission. Returns their number. */
int64_t call_log_copy(struct nf_core *core, struct nf_call_record *to, int64_t capacity);

#endif
