/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "scheduler.h"

#include <stdio.h>

#include "../call/fingerprint.h"
#include "../call/ranges.h"
#include "../call/scales.h"
#include "../parts/handover.h"
#include "../parts/parts.h"
#include "../parts/reencode.h"
#include "../transport/tree.h"
#include "call_log.h"
#include "calls.h"
#include "segments.h"

/* Larger calls end with a closing chunk: their results are not retained. PyTorch's first bucket is a little above 1 MiB. */
enum { MAX_RETAINED_BYTES = 2 << 20 };

/* Returns the part that a call in a state waits for. */
static const struct call_part *part_of(const struct nf_call *call, enum call_state state) {
    static const struct call_part *const parts[] = {
        [CALL_HANDOVER] = &handover_part,   [CALL_DATA] = &data_part,       [CALL_SPECIALS] = &specials_part,
        [CALL_REENCODED] = &reencoded_part, [CALL_CLOSING] = &closing_part,
    };
    return state == CALL_DATA && call->rows.form == NF_GATHER ? &gather_part : parts[state];
}

/* Returns the state after the part of `call` is complete. */
static enum call_state next_state(const struct nf_call *call) {
    switch (call->progress.state) {
    case CALL_DATA:
        return CALL_SPECIALS;
    case CALL_SPECIALS:
        return CALL_REENCODED;
    case CALL_REENCODED:
        if (reencode_is_due(call)) return CALL_SPECIALS;
        return call_bytes(call) > MAX_RETAINED_BYTES || call->rows.form == NF_SCATTER ? CALL_CLOSING : CALL_FINISHED;
    default: /* CALL_HANDOVER, CALL_CLOSING */
        return CALL_FINISHED;
    }
}

/* Returns STEP_AGAIN if the segment is scheduled. A call that does not fit into an epoch of its own fits into none. */
static struct step schedule_call_segment(struct nf_call *call, struct tree *t, const struct segment *of) {
    enum nf_status status = of->count ? schedule_segment(t, of) : NF_PENDING;
    if (status == NF_PENDING) return STEP_AGAIN;
    if (status != NF_EXHAUSTED) return step_fail(status);
    const struct stream *r = stream_of(t, of->ops->stream);
    snprintf(call->outcome.message, NF_MESSAGE_BYTES,
             "tree %lld: job epoch %lld has %lld chunk numbers left and the call needs %lld", (long long)t->spec.tree,
             (long long)t->epoch, (long long)(r->limit - r->end), (long long)of->count);
    return call->progress.is_first_of_epoch ? step_fail(NF_EXHAUSTED) : STEP_NEW_EPOCH;
}

/* Gives each tree its segment of a part. */
static struct step schedule_part(struct nf_core *core, struct nf_call *call, const struct call_part *part) {
    int has_quorum = core->assignment.quorum && part->ops.can_seal && !call->handover.holders;
    for (int64_t i = 0; i < core->tree_count; i++) {
        int64_t count = part->plan(call, &core->trees[i]);
        if (count < 0) return step_fail(NF_NO_MEMORY);
        struct segment s = {.ops = &part->ops, .owner = call, .count = count};
        s.first = call->attempt.run[i].first;
        s.is_held = part == &data_part && waits_for_opening(call);
        s.quorum = has_quorum ? &call->attempt.quorum_tracker : NULL;
        struct step step = schedule_call_segment(call, &core->trees[i], &s);
        if (step.type != AGAIN) return step;
    }
    return STEP_AGAIN;
}

/* Gives each tree its rows of the stripe that was assigned last. The last rows of each channel are held: they carry the scales of
 * the next stripe's first rows, so they wait until that is assigned. */
static struct step schedule_stripe(struct nf_core *core, struct nf_call *call) {
    int64_t stripe = call->attempt.balance->assigned_stripes - 1;
    for (int64_t i = 0; i < core->tree_count; i++) {
        struct tree *t = &core->trees[i];
        struct nf_run run = call_run(call, i, stripe);
        int64_t tail = call_is_assigned(call) || run.first == run.last ? 0 : rows_ahead(t);
        tree_release(t, call, &stripe_tail_part.ops);
        struct segment s = {.ops = &data_part.ops, .owner = call};
        s.first = run.first;
        s.stripe = stripe;
        s.count = run.last - run.first - tail;
        s.is_held = stripe == 0 && waits_for_opening(call);
        struct step step = schedule_call_segment(call, t, &s);
        if (step.type != AGAIN) return step;
        s.ops = &stripe_tail_part.ops;
        s.first += s.count;
        s.count = tail;
        s.is_held = 1;
        step = schedule_call_segment(call, t, &s);
        if (step.type != AGAIN) return step;
    }
    return STEP_AGAIN;
}

/* Assigns the next stripe if the reports for it are known, or reports. */
static struct step advance_striped_call(struct nf_core *core, struct nf_call *call, double now) {
    struct nf_balance *b = call->attempt.balance;
    if (b->has_reports) {
        nf_balance_assign_stripe(b, now);
        return schedule_stripe(core, call);
    }
    if (!nf_balance_report_due(b)) return STEP_WAIT;
    nf_balance_report(b, now);
    return schedule_part(core, call, &rate_report_part);
}

/* Starts the next part of the first call, once all results of its part are here. */
static struct step start_next_part(struct nf_core *core, struct nf_call *call) {
    enum call_state next = next_state(call);
    if (call->progress.state == CALL_REENCODED && next != CALL_SPECIALS) call->result = reencode_finish(call);
    if (call->progress.state == CALL_HANDOVER) {
        handover_finish(call);
        call->progress.epoch = 0; /* it has no scales of this epoch */
    }
    if (next == CALL_FINISHED) {
        calls_finish_first(core, call->result);
        return STEP_AGAIN;
    }
    call->progress.state = next;
    return schedule_part(core, call, part_of(call, next));
}

static int is_division_complete(const struct nf_call *call) {
    return call->progress.state != CALL_DATA || call_is_assigned(call);
}

int can_advance(const struct nf_core *core, const struct nf_call *call) {
    return !is_division_complete(call) || !has_segment(core, call);
}

struct step advance_call(struct nf_core *core, struct nf_call *call, double now) {
    return is_division_complete(call) ? start_next_part(core, call) : advance_striped_call(core, call, now);
}

/* Schedules the opening and the part of the state. A retained call stays finished. */
static struct step start_call(struct nf_core *core, struct nf_call *call, enum call_state state) {
    if (!call->progress.is_retained) {
        call->progress.state = state;
        call_log_started(core, call);
    }
    call->progress.is_first_of_epoch = !core->has_started_call;
    core->has_started_call = 1;
    struct step step = schedule_part(core, call, &opening_part);
    if (step.type != AGAIN) return step;
    int is_striped = state == CALL_DATA && call->attempt.balance;
    return is_striped ? schedule_stripe(core, call) : schedule_part(core, call, part_of(call, state));
}

struct step start_handover(struct nf_core *core, struct nf_call *call) { return start_call(core, call, CALL_HANDOVER); }

/* All workers have finished the calls up to `last` when they start the next one, so all have learned from these, and from no
 * others. */
static void learn_scales(struct nf_core *core, int64_t last) {
    for (struct nf_call *k = core->retained; k && k->outcome.number <= last; k = k->next) {
        if (k->progress.epoch) {
            scales_learn(k, &core->predictor);
            ranges_learn(k, &core->predictor);
        }
        k->progress.epoch = 0;
    }
    calls_release_stable(core);
}

/* Returns whether the blocks of a gather have owners by other ranks than those of the epoch: workers were lost, or came. A scatter
 * of an elastic job is a sum to all. */
static int has_other_owners(const struct nf_core *core, const struct nf_call *call) {
    return call->request.form == NF_GATHER && call->workers && call->workers != core->assignment.workers;
}

static struct step refuse_other_owners(const struct nf_core *core, struct nf_call *call) {
    snprintf(call->outcome.message, NF_MESSAGE_BYTES, "its blocks are those of %lld workers, and the job epoch has %lld",
             (long long)call->workers, (long long)core->assignment.workers);
    return step_fail(NF_CALL_DESYNC);
}

struct step start_next_call(struct nf_core *core) {
    int64_t ahead = 0, channels[NF_TREES_MAX];
    struct nf_call *call = core->first;
    for (; call && call->progress.state != CALL_WAITING; call = call->next) {
        if (!is_division_complete(call)) return STEP_WAIT; /* its last rows have no places in the streams yet */
        ahead++;
    }
    int64_t depth = call && call->request.follows_all ? 1 : core->depth;
    if (!call || ahead >= depth) return STEP_WAIT;
    if (has_other_owners(core, call)) return ahead ? STEP_WAIT : refuse_other_owners(core, call);
    call->outcome.number = core->next_call + ahead;
    learn_scales(core, call->outcome.number - depth);
    int scheme = ranges_choose_scheme(call, &core->assignment, &core->predictor);
    if (scheme < 0 || call_cut_rows(call, &core->assignment, (enum nf_scheme)scheme)) return step_fail(NF_NO_MEMORY);
    call_start_attempt(call, &core->assignment);
    for (int64_t i = 0; i < core->tree_count; i++) channels[i] = rows_ahead(&core->trees[i]);
    if (call_divide_rows(call, &core->assignment, channels)) return step_fail(NF_NO_MEMORY);
    scales_predict(call, &core->predictor);
    fingerprint_compute(call);
    fingerprint_add_division(call);
    call->progress.epoch = core->assignment.epoch;
    return start_call(core, call, CALL_DATA);
}
