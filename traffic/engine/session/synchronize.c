/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "synchronize.h"

#include <stdio.h>
#include <string.h>

#include "../parts/handover.h"
#include "calls.h"
#include "scheduler.h"
#include "segments.h"

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct resume_exchange *e = s->owner;
    (void)chunk;
    clear_lanes(t, h);
    if (e->number.byte < CALL_ID_BYTES) {
        h->exponent = (uint8_t)e->number.byte_sent;
    } else {
        resume_write_votes(&e->terms, &e->votes, h);
        resume_write_nonce(e->nonce_field, e->nonce, h);
    }
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    struct resume_exchange *e = s->owner;
    (void)chunk, (void)now;
    if (e->number.byte < CALL_ID_BYTES) {
        e->number.byte_max = h->exponent;
    } else {
        resume_read_votes(&e->terms, &e->sums, h, t->lanes);
        e->is_of_other_process = !resume_has_nonce(e->nonce_field, e->nonce, h);
    }
    return NF_PENDING;
}

static const struct part_ops resume_part_ops = {CONTROL, 0, fill, take};

/* Returns STEP_AGAIN if the segment is scheduled. */
static struct step schedule(struct nf_core *core, const struct part_ops *ops, int64_t count) {
    struct segment s = {.ops = ops, .owner = &core->resume, .count = count};
    enum nf_status status = schedule_segment(&core->trees[0], &s);
    if (status == NF_PENDING) return STEP_AGAIN;
    return status == NF_EXHAUSTED ? STEP_NEW_EPOCH : step_fail(status);
}

static struct step send_chunk(struct nf_core *core) {
    core->resume.is_sent = 1;
    return schedule(core, &resume_part_ops, 1);
}

static struct resume_worker this_worker(const struct nf_core *core) {
    return (struct resume_worker){.next_call = core->next_call,
                                  .first_call = core->joined_at_call,
                                  .is_newcomer = core->is_newcomer,
                                  .was_started = core->first && core->first->progress.epoch,
                                  .is_ready = core->first && core->first->progress.is_ready};
}

void synchronize_reset(struct nf_core *core) {
    const struct nf_assignment *a = &core->assignment;
    core->is_synchronized = 0;
    core->next_handover = core->handover_end = 0;
    core->resume = (struct resume_exchange){
        .terms = {a->workers, core->max_depth, a->quorum > 0, has_newcomers(a), a->targets != NF_NO_TARGETS},
        .number.byte = has_newcomers(a) ? 0 : CALL_ID_BYTES,
        .nonce = a->nonce,
    };
    core->resume.nonce_field = resume_nonce_field(&core->resume.terms, a->lanes, a->rank);
}

static struct step send_call_byte(struct nf_core *core) {
    struct resume_worker worker = this_worker(core);
    resume_send_call_byte(&core->resume.number, &worker);
    return send_chunk(core);
}

/* Votes tell few calls apart. A worker further behind was dropped, and continues as a newcomer. */
static struct step take_call_byte(struct nf_core *core) {
    struct resume_number *number = &core->resume.number;
    resume_take_call_byte(number);
    if (number->byte < CALL_ID_BYTES) return send_call_byte(core);
    core->resume.is_sent = 0;
    if (!core->is_newcomer && core->next_call + core->max_depth < number->newest_call) {
        core->is_newcomer = 1;
        calls_end_all(core, NF_STRAGGLED);
    }
    return STEP_AGAIN;
}

static struct step send_votes(struct nf_core *core) {
    struct resume_exchange *e = &core->resume;
    struct resume_worker worker = this_worker(core);
    e->votes = resume_vote(&e->terms, &worker);
    for (const struct nf_call *call = core->retained; call && e->terms.has_newcomers; call = call->next)
        if (call->rows.input && call->outcome.number >= core->next_call - core->max_depth)
            resume_offer(&e->votes, call->outcome.number, handover_chunks(call, core->assignment.lanes));
    return send_chunk(core);
}

/* E10. A ready call that is not finished is made again. */
static void finish_ready_call(struct nf_core *core) {
    struct nf_call *call = core->first;
    if (!call || !call->progress.is_ready) return;
    call->progress.is_ready = 0;
    if (core->resume.outcome.is_ready_finished) calls_finish_first(core, call->result);
}

/* Returns the call of this number, which is retained or not finished. */
static struct nf_call *find_call(const struct nf_core *core, int64_t number) {
    struct nf_call *call = number < core->next_call ? core->retained : core->first;
    if (number < core->next_call)
        while (call && call->outcome.number < number) call = call->next;
    else
        for (int64_t n = core->next_call; call && n < number; n++) call = call->next;
    return call;
}

/* Returns whether a scatter ended at one worker when its deadline had passed, and others lack their parts of its result. */
static int hands_over_scatter(const struct nf_core *core) {
    const struct resume_outcome *o = &core->resume.outcome;
    for (int64_t number = o->first; number < o->end; number++) {
        const struct nf_call *call = find_call(core, number);
        if (call && call->rows.form == NF_SCATTER) return 1;
    }
    return 0;
}

static struct step take_votes(struct nf_core *core) {
    struct resume_exchange *e = &core->resume;
    if (e->is_of_other_process) {
        if (core->first)
            snprintf(core->first->outcome.message, NF_MESSAGE_BYTES,
                     "another process of this worker has taken part in the job epoch");
        return step_fail(NF_CALL_DESYNC);
    }
    struct resume_worker worker = this_worker(core);
    e->outcome = resume_evaluate_votes(&e->terms, &worker, e->number.newest_call, &e->sums);
    core->next_call = e->outcome.next_call;
    core->joined_at_call = e->outcome.first_call;
    if (e->outcome.is_desync) {
        if (core->first)
            snprintf(core->first->outcome.message, NF_MESSAGE_BYTES, "it is in call %lld, others are in calls %lld to %lld",
                     (long long)core->next_call, (long long)e->outcome.first, (long long)e->outcome.end);
        return step_fail(NF_CALL_DESYNC);
    }
    core->is_synchronized = 1;
    core->is_newcomer = 0;
    finish_ready_call(core);
    if (hands_over_scatter(core)) return step_fail(NF_CALL_DESYNC);
    calls_mark_stable(core, e->outcome.stable_until);
    core->next_handover = e->outcome.first;
    core->handover_end = e->outcome.end;
    return STEP_AGAIN;
}

struct step synchronize(struct nf_core *core) {
    struct resume_exchange *e = &core->resume;
    int is_complete = e->number.byte == CALL_ID_BYTES;
    if (e->is_sent && has_segment(core, e)) return STEP_WAIT;
    if (e->is_sent) return is_complete ? take_votes(core) : take_call_byte(core);
    if (!core->first && (core->assignment.quorum || !core->retained)) return STEP_WAIT;
    return is_complete ? send_votes(core) : send_call_byte(core);
}

/* A handover between other workers uses its chunks; this newcomer adds nothing to them. */
static struct step pass_through(struct nf_core *core, int64_t chunks) {
    if (chunks <= 0) return step_fail(NF_CALL_DESYNC);
    struct step step = schedule(core, &pass_through_ops, 1); /* the opening */
    return step.type == AGAIN ? schedule(core, &pass_through_ops, chunks) : step;
}

struct step start_next_handover(struct nf_core *core) {
    const struct resume_outcome *o = &core->resume.outcome;
    int64_t number = core->next_handover, i = number - o->first, submitted = core->next_call;
    if (number < core->joined_at_call) {
        core->next_handover++;
        return pass_through(core, o->chunks[i]);
    }
    for (const struct nf_call *call = core->first; call; call = call->next) submitted++;
    if (number >= submitted) return STEP_WAIT;
    core->next_handover++;
    int is_holder = number < core->next_call;
    struct nf_call *call = find_call(core, number);
    if (!call || (is_holder && !call->rows.input)) return step_fail(NF_CALL_DESYNC);
    call->outcome.number = number;
    handover_prepare(call, &core->assignment, o->contributors[i], o->holders[i], is_holder);
    return start_handover(core, call);
}
