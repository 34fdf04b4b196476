/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "call_log.h"

#include <stddef.h>

/* Returns the record of a call; NULL: later calls have replaced it. */
static struct nf_call_record *record_of(struct nf_core *core, const struct nf_call *call) {
    struct call_log *log = &core->log;
    return log->count - call->order > NF_CALL_LOG ? NULL : &log->records[call->order % NF_CALL_LOG];
}

static int32_t retransmits_of(const struct nf_core *core) {
    int64_t count = core->totals.retransmits;
    for (int64_t i = 0; i < core->tree_count; i++) count += core->trees[i].retransmits;
    return (int32_t)count;
}

static int32_t outstanding_of(const struct nf_core *core, const struct nf_call *call) {
    int64_t count = 0;
    for (int64_t i = 0; i < core->tree_count; i++)
        for (int stream = 0; stream < STREAMS; stream++)
            for (const struct segment *s = core->trees[i].streams[stream].first; s; s = s->next)
                if (s->owner == call) count += s->remaining;
    return (int32_t)count;
}

void call_log_submitted(struct nf_core *core, struct nf_call *call) {
    const struct nf_request *r = &call->request;
    call->order = core->log.count++;
    *record_of(core, call) = (struct nf_call_record){.number = -1,
                                                     .bytes = call_bytes(call),
                                                     .context = r->context,
                                                     .kind = (uint8_t)r->kind,
                                                     .dtype = (uint8_t)r->dtype,
                                                     .submitted = r->submitted};
}

void call_log_started(struct nf_core *core, struct nf_call *call) {
    struct nf_call_record *r = record_of(core, call);
    if (!r) return;
    r->number = call->outcome.number;
    r->epoch = (uint16_t)core->assignment.epoch;
    r->trees = (uint16_t)core->tree_count;
    if (r->started > 0) return; /* in an earlier epoch */
    r->started = core->now;
    call->retransmits_before = retransmits_of(core);
}

void call_log_ended(struct nf_core *core, const struct nf_call *call) {
    struct nf_call_record *r = record_of(core, call);
    if (!r) return;
    r->state = CALL_FINISHED;
    r->status = (uint8_t)call->outcome.status;
    r->ended = core->now;
    if (r->started > 0) r->retransmits = retransmits_of(core) - call->retransmits_before;
    if (call->outcome.status == NF_DONE) r->outstanding = 0;
}

void call_log_refresh(struct nf_core *core) {
    for (const struct nf_call *call = core->first; call; call = call->next) {
        struct nf_call_record *r = record_of(core, call);
        if (!r) continue;
        r->state = (uint8_t)call->progress.state;
        r->outstanding = outstanding_of(core, call);
        if (r->started > 0) r->retransmits = retransmits_of(core) - call->retransmits_before;
    }
}

int64_t call_log_copy(struct nf_core *core, struct nf_call_record *to, int64_t capacity) {
    const struct call_log *log = &core->log;
    int64_t count = log->count < NF_CALL_LOG ? log->count : NF_CALL_LOG;
    if (count > capacity) count = capacity;
    call_log_refresh(core);
    for (int64_t i = 0; i < count; i++) to[i] = log->records[(log->count - count + i) % NF_CALL_LOG];
    return count;
}
