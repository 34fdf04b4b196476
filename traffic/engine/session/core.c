/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The course of calls, docs/reference/protocol.md, section 5.3: once in each epoch the workers synchronize their call numbers;
 * results that some workers lack are handed over; then calls start in their order, a few at a time, and finish in it. A worker
 * retains the results of the last calls until it knows that all workers have them.
 *
 * Only this file ends an epoch: functions below return a step or a status. */

#include "core.h"

#include <stdlib.h>
#include <string.h>

#include "../parts/parts.h"
#include "../transport/tree.h"
#include "call_log.h"
#include "calls.h"
#include "departures.h"
#include "timeout_message.h"
#include "scheduler.h"
#include "segments.h"
#include "state.h"
#include "synchronize.h"

struct nf_core *nf_core_create(void) {
    struct nf_core *core = calloc(1, sizeof *core);
    if (core) core->is_newcomer = 1;
    return core;
}

/* Stops all trees: nothing is in flight any more. */
static void stop_trees(struct nf_core *core) {
    for (int64_t i = 0; i < core->tree_count; i++) {
        core->totals.retransmits += core->trees[i].retransmits;
        core->totals.probes += core->trees[i].probes;
        core->totals.late_contributions += core->trees[i].late_contributions;
        tree_free(&core->trees[i]);
    }
    core->tree_count = 0;
    core->generation++;
    core->has_started_call = 0;
    synchronize_reset(core);
    calls_reset(core);
}

int64_t nf_core_generation(const struct nf_core *core) { return core->generation; }

void nf_core_destroy(struct nf_core *core) {
    stop_trees(core);
    calls_free(core);
    nf_predictor_clear(&core->predictor);
    free(core);
}

int nf_core_assign(struct nf_core *core, const struct nf_assignment *a, double now) {
    core->now = now;
    calls_end_epoch(core);
    core->totals.restarts += core->first && core->first->progress.state != CALL_WAITING;
    stop_trees(core);
    for (struct nf_call *call = core->retained; call; call = call->next)
        call->progress.epoch = 0; /* scales of another epoch are not learned */
    calls_release_stable(core);
    nf_predictor_clear(&core->predictor);
    core->assignment = *a;
    core->packet_bytes = NF_HEADER_BYTES + 4 * a->lanes;
    core->max_depth = (a->lanes - 1) / 2 < NF_MAX_CALLS_IN_FLIGHT ? (a->lanes - 1) / 2 : NF_MAX_CALLS_IN_FLIGHT;
    core->depth = core->max_depth;
    synchronize_reset(core);
    for (int64_t i = 0; i < a->tree_count; i++) {
        core->tree_count = i + 1;
        if (a->trees[i].slots == 2) core->depth = 1; /* one stream carries one call after the other */
        if (tree_init(&core->trees[i], a, i, now)) return -1;
    }
    core->totals.has_failed_call = core->totals.unusable_epoch = 0;
    return 0;
}

void nf_core_set_departures(struct nf_core *core, int64_t epoch, const struct nf_departures *departures) {
    if (epoch == core->assignment.epoch) core->assignment.departures = *departures;
}

struct nf_call *nf_core_submit(struct nf_core *core, const struct nf_request *request) {
    struct nf_call *call = call_create(request);
    if (!call) return NULL;
    call->workers = core->assignment.workers;
    calls_append(core, call);
    call_log_submitted(core, call);
    return call;
}

const struct nf_outcome *nf_core_outcome(const struct nf_call *call) { return &call->outcome; }

void nf_core_release(struct nf_core *core, struct nf_call *call) {
    (void)core;
    call->progress.is_released = 1;
    if (!call->progress.is_retained) call_free(call);
}

/* ---- failures ---- */

/* Ends all calls after one failed half-way. From now on chunk numbers differ between workers, so nothing more is sent in this
 * epoch, and later calls cannot continue. Retained results stay. */
static void fail_epoch(struct nf_core *core, int64_t status) {
    calls_finish_closing(core);
    struct nf_call *call = core->first;
    if (call && status == NF_TIMEOUT) timeout_message_write(core, call->outcome.message, sizeof call->outcome.message);
    core->totals.has_failed_call = core->assignment.epoch > 0;
    core->totals.unusable_epoch = 0;
    core->is_newcomer |= status == NF_STRAGGLED;
    call_log_refresh(core);
    stop_trees(core);
    calls_end_all(core, status);
}

void nf_core_abort(struct nf_core *core) {
    if (core->first) fail_epoch(core, NF_ABORTED);
}

void nf_core_fail_epoch_waiters(struct nf_core *core) {
    if (core->first && core->totals.unusable_epoch)
        fail_epoch(core, core->assignment.departures.is_limited ? NF_WORKERS_LEFT : NF_EXHAUSTED);
}

/* ---- results ---- */

/* Notes which calls all workers have, as the result of a chunk proves. A worker sends a chunk of a call only if it has the
 * results of the call `depth` before, and a closing chunk only if it has those of the call. */
static void note_stable(struct nf_core *core, const struct nf_call *call, const struct part_ops *ops) {
    int is_first_part = ops == &opening_part.ops || ops == &data_part.ops;
    if (is_first_part && !call->handover.holders) calls_mark_stable(core, call->outcome.number - core->depth + 1);
    if (ops == &closing_part.ops && call->rows.form != NF_SCATTER) calls_mark_stable(core, call->outcome.number + 1);
}

static void on_result(struct nf_core *core, struct tree *t, struct segment *s, int64_t chunk, struct header *h, double now) {
    int64_t status = s->ops->take(t, s, chunk, h, now);
    struct nf_call *call = s->owner == &core->resume ? NULL : s->owner;
    if (s->ops == &opening_part.ops) tree_release(t, call, &data_part.ops);
    if (call && status == NF_PENDING) note_stable(core, call, s->ops);
    if (s->remaining == 0) free(s);
    if (status == NF_PENDING) return;
    if (call->progress.is_retained)
        fail_epoch(core, status);
    else if (call->attempt.error == NF_PENDING || status == NF_MISMATCH)
        call->attempt.error = status;
}

/* The sum is no longer available: the other workers continued without this one. */
static void on_slot_reused(struct nf_core *core) {
    if (!core->is_synchronized || !core->first) /* it is a newcomer: all have to start together */
        core->totals.unusable_epoch = core->assignment.epoch;
    else
        fail_epoch(core, NF_STRAGGLED);
}

/* Returns a short result with its lanes, which are 0. */
static struct header *with_zeros(struct nf_core *core, const struct header *h) {
    struct header *whole = (struct header *)core->short_result;
    *whole = *h;
    memset(lanes_of(whole), 0, (size_t)(core->packet_bytes - NF_HEADER_BYTES));
    return whole;
}

void nf_core_receive(struct nf_core *core, int64_t endpoint, const uint8_t *packet, int64_t length, int marked, double now) {
    if (length != core->packet_bytes && length != NF_HEADER_BYTES) return;
    struct header *h = (struct header *)packet;
    uint16_t number = __builtin_bswap16(h->tree);
    for (int64_t i = 0; i < core->tree_count; i++) {
        struct tree *t = &core->trees[i];
        if (t->spec.tree != number || t->spec.endpoint != endpoint) continue;
        int64_t chunk;
        struct segment *s = tree_on_result(t, h, length, marked, now, &chunk);
        if (s && length != core->packet_bytes && target_wants(h, t->rank)) h = with_zeros(core, h);
        if (s)
            on_result(core, t, s, chunk, h, now);
        else if (t->slot_reused)
            on_slot_reused(core);
        return;
    }
}

/* ---- progress ---- */

static struct step next_step(struct nf_core *core, double now) {
    struct step step = departures_step(core);
    if (step.type != WAIT) return step;
    if (!core->is_synchronized) return synchronize(core);
    struct nf_call *call = core->first;
    if (call && call->progress.state != CALL_WAITING && call->attempt.is_opened) {
        if (call->attempt.error != NF_PENDING) return step_fail((enum nf_status)call->attempt.error);
        if (can_advance(core, call)) return advance_call(core, call, now);
    }
    if (core->next_handover < core->handover_end) return start_next_handover(core);
    return start_next_call(core);
}

/* Advances calls as far as possible without further results. */
static void advance(struct nf_core *core, double now) {
    struct step step = STEP_AGAIN;
    while (core->tree_count && !core->totals.unusable_epoch && step.type == AGAIN) step = next_step(core, now);
    if (step.type == NEW_EPOCH) core->totals.unusable_epoch = core->assignment.epoch;
    if (step.type == FAIL) fail_epoch(core, step.status);
}

static void check_deadlines(struct nf_core *core, double now) {
    for (struct nf_call *call = core->first; call; call = call->next) {
        if (now < call->request.deadline) continue;
        if (lacks_closing_only(call))
            calls_finish_closing(core);
        else
            fail_epoch(core, NF_TIMEOUT);
        return;
    }
}

void nf_core_process(struct nf_core *core, double now) {
    core->now = now;
    for (int64_t i = 0; i < core->tree_count; i++) tree_update_window(&core->trees[i], now);
    advance(core, now);
    check_deadlines(core, now); /* after the results that have arrived */
}

int64_t nf_core_send(struct nf_core *core, struct nf_out *out, int64_t capacity, double now) {
    int64_t n = 0;
    for (int64_t i = 0; i < core->tree_count && n < capacity; i++) n += tree_send(&core->trees[i], out + n, capacity - n, now);
    return n;
}

double nf_core_next_deadline(struct nf_core *core, double now) {
    double next = NF_UNKNOWN;
    for (int64_t i = 0; i < core->tree_count; i++) {
        double due = tree_next_deadline(&core->trees[i], now);
        if (due < next) next = due;
    }
    for (const struct nf_call *call = core->first; call; call = call->next)
        if (call->request.deadline < next) next = call->request.deadline;
    return next;
}

double nf_core_coalescing_delay(const struct nf_core *core) {
    double limit = core->assignment.timing.ack_coalescing, delay = 0;
    for (int64_t i = 0; i < core->tree_count; i++) {
        double here = tree_coalescing_delay(&core->trees[i]);
        if (here > delay) delay = here;
    }
    return delay < limit ? delay : limit;
}

/* ---- reports ---- */

struct nf_totals nf_core_totals(const struct nf_core *core) {
    struct nf_totals totals = core->totals;
    totals.next_call = core->next_call;
    totals.has_call = core->first != NULL;
    if (core->first) {
        totals.call_kind = core->first->request.kind;
        totals.call_bytes = call_bytes(core->first);
        totals.call_submitted = core->first->request.submitted;
    }
    totals.must_serve_handover = core->tree_count && core->retained && !core->is_synchronized;
    for (const struct nf_call *call = core->retained; call; call = call->next)
        totals.must_serve_handover |= has_segment(core, call);
    for (int64_t i = 0; i < core->tree_count; i++) {
        totals.retransmits += core->trees[i].retransmits;
        totals.probes += core->trees[i].probes;
        totals.late_contributions += core->trees[i].late_contributions;
    }
    return totals;
}

int64_t nf_core_call_log(struct nf_core *core, struct nf_call_record *to, int64_t capacity) {
    return call_log_copy(core, to, capacity);
}

int64_t nf_core_trees(const struct nf_core *core) { return core->tree_count; }

struct nf_tree_report nf_core_report(const struct nf_core *core, int64_t tree) {
    const struct tree *t = &core->trees[tree];
    return (struct nf_tree_report){t->spec.tree,
                                   nf_window_cwnd(&t->window),
                                   t->window.state.cwnd.max,
                                   t->retransmits,
                                   t->probes,
                                   t->results,
                                   t->marked,
                                   tree_open_slot(t),
                                   t->rtt.srtt,
                                   t->rtt.min_rtt};
}
