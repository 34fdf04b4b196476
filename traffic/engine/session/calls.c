/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "call_log.h"
#include "segments.h"

void calls_append(struct nf_core *core, struct nf_call *call) {
    if (core->last)
        core->last->next = call;
    else
        core->first = call;
    core->last = call;
    core->totals.pending++;
}

/* Takes the first call off the queue. */
static void finish(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first;
    core->first = call->next;
    if (!core->first) core->last = NULL;
    call->next = NULL;
    call->progress.state = CALL_FINISHED;
    call->outcome.status = status;
    call_log_ended(core, call);
    core->totals.pending--;
}

void calls_finish_first(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first, **end = &core->retained;
    if (status != NF_DONE)
        call_restore_input(call);
    else if (call->rows.form == NF_SCATTER)
        call_release_result(call); /* it is no other worker's, but this worker has to vote for it, E11 */
    else if (core->stable_until <= call->outcome.number)
        call_retain_result(call);
    core->totals.reencoded_chunks += call->attempt.reencoded_chunks;
    core->next_call++;
    finish(core, status);
    while (*end) end = &(*end)->next;
    *end = call;
    call->progress.is_retained = 1;
    calls_release_stable(core);
}

void calls_finish_closing(struct nf_core *core) {
    struct nf_call *call = core->first;
    if (!call || !lacks_closing_only(call)) return;
    call->progress.is_ready = 0;
    calls_finish_first(core, call->result);
}

void calls_end_epoch(struct nf_core *core) {
    struct nf_call *call = core->first;
    if (call && lacks_closing_only(call) && call->rows.form == NF_SCATTER)
        call->progress.is_ready = 1;
    else
        calls_finish_closing(core);
}

void calls_end_all(struct nf_core *core, int64_t status) {
    struct nf_call *call;
    for (int is_first = 1; (call = core->first); is_first = 0) {
        if (!is_first) snprintf(call->outcome.message, NF_MESSAGE_BYTES, "an earlier call failed");
        call_restore_input(call);
        finish(core, is_first || status == NF_WORKERS_LEFT ? status : NF_ABORTED);
    }
}

void calls_release_stable(struct nf_core *core) {
    struct nf_call **at = &core->retained, *call;
    while ((call = *at) && call->outcome.number < core->stable_until) {
        int is_sent = has_segment(core, call); /* as a handover */
        if (!is_sent) call_release_result(call);
        if (is_sent || call->progress.epoch) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        call->progress.is_retained = 0;
        if (call->progress.is_released) call_free(call);
    }
}

void calls_mark_stable(struct nf_core *core, int64_t number) {
    if (number <= core->stable_until) return;
    core->stable_until = number;
    calls_release_stable(core);
}

void calls_reset(struct nf_core *core) {
    for (struct nf_call *call = core->first; call; call = call->next) call->progress.state = CALL_WAITING;
}

void calls_free(struct nf_core *core) {
    struct nf_call *lists[] = {core->first, core->retained};
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct nf_call *call = lists[i];
            lists[i] = call->next;
            call_free(call);
        }
}
