/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The course of calls, docs/protocol.md, section 5.3. Once in each epoch the workers tell each other in which call they are;
 * results that some have and others lack are handed over; then calls begin in their order, a few at a time, and end in it.
 * A worker keeps the results of the last calls until it knows that all have them. */

#include "core.h"

#include <stdio.h>
#include <stdlib.h>

#include "begin.h"
#include "core_state.h"
#include "hand.h"
#include "repeat.h"
#include "resume.h"

struct nf_core *nf_core_create(void) {
    struct nf_core *core = calloc(1, sizeof *core);
    if (core) core->strange = 1;
    return core;
}

static void begin_again(struct nf_call *call) {
    call->outstanding = 0;
    if (!call->kept) call->part = WAITING;
}

/* Nothing is under way any more. */
static void stop_trees(struct nf_core *core) {
    for (int64_t i = 0; i < core->tree_count; i++) {
        core->totals.retransmits += core->trees[i].retransmits;
        core->totals.late += core->trees[i].late;
        tree_free(&core->trees[i]);
    }
    core->tree_count = 0;
    core->generation++;
    core->together = core->used = 0;
    core->hand_next = core->hand_end = 0;
    begin_again(&core->joint);
    for (struct nf_call *call = core->first; call; call = call->next) begin_again(call);
    for (struct nf_call *call = core->kept; call; call = call->next) begin_again(call);
}

int64_t nf_core_generation(const struct nf_core *core) { return core->generation; }

void nf_core_destroy(struct nf_core *core) {
    stop_trees(core);
    struct nf_call *lists[] = {core->first, core->kept};
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct nf_call *call = lists[i];
            lists[i] = call->next;
            call_free(call);
        }
    nf_predictions_forget(&core->predictions);
    free(core);
}

void core_forget_proven(struct nf_core *core) {
    struct nf_call **at = &core->kept, *call;
    while ((call = *at) && call->outcome.number < core->proven) {
        if (!call->outstanding) {
            free(call->input);
            call->input = NULL;
        }
        if (call->outstanding || call->epoch) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        call->kept = 0;
        if (call->released) call_free(call);
    }
}

void core_prove(struct nf_core *core, int64_t number) {
    if (number <= core->proven) return;
    core->proven = number;
    core_forget_proven(core);
}

/* Takes the first call off the queue. */
static void over(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first;
    core->first = call->next;
    if (!core->first) core->last = NULL;
    call->next = NULL;
    call->part = OVER;
    call->outcome.status = status;
    core->totals.pending--;
}

/* The first call is over, and others may ask for its results. */
static void succeed(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first, **end = &core->kept;
    if (status != NF_DONE)
        call_restore(call);
    else if (core->proven <= call->outcome.number)
        call_keep(call);
    core->totals.overflows += call->overflows;
    core->number++;
    over(core, status);
    while (*end) end = &(*end)->next;
    *end = call;
    call->kept = 1;
    core_forget_proven(core);
}

int nf_core_assign(struct nf_core *core, const struct nf_assignment *a, double now) {
    struct nf_call *call = core->first;
    if (call && call->part == CLOSING) succeed(core, call->result);
    call = core->first;
    core->totals.restarts += call && call->part != WAITING;
    stop_trees(core);
    for (call = core->kept; call; call = call->next) call->epoch = 0; /* scales of another epoch do not count */
    core_forget_proven(core);
    nf_predictions_forget(&core->predictions);
    core->assignment = *a;
    core->joint.digit = takes_newcomers(a) ? 0 : DIGITS;
    core->joint.newest = 0;
    core->packet_bytes = NF_HEADER_BYTES + 4 * a->lanes;
    core->depth_most = (a->lanes - 1) / 2 < NF_UNDER_WAY ? (a->lanes - 1) / 2 : NF_UNDER_WAY;
    core->depth = core->depth_most;
    for (int64_t i = 0; i < a->tree_count; i++) {
        core->tree_count = i + 1;
        if (a->trees[i].slots == 2) core->depth = 1; /* its one stream carries one call after the other */
        if (tree_start(&core->trees[i], a, i, now)) return -1;
    }
    core->totals.broken = core->totals.worn = 0;
    return 0;
}

struct nf_call *nf_core_submit(struct nf_core *core, const struct nf_request *request) {
    struct nf_call *call = call_create(request);
    if (!call) return NULL;
    if (core->last)
        core->last->next = call;
    else
        core->first = call;
    core->last = call;
    core->totals.pending++;
    return call;
}

const struct nf_outcome *nf_core_outcome(const struct nf_call *call) { return &call->outcome; }

void nf_core_release(struct nf_core *core, struct nf_call *call) {
    (void)core;
    call->released = 1;
    if (!call->kept) call_free(call);
}

static int64_t lowest_missing(const struct tree *t, const struct segment *s) {
    int64_t lowest = -1;
    for (int64_t k = 0; k < t->count; k++) {
        const struct channel *c = &t->channels[k];
        if (c->busy && c->segment == s && (lowest < 0 || c->due - s->base < lowest)) lowest = c->due - s->base;
    }
    return lowest;
}

static void describe_missing(const struct nf_core *core, char *to, size_t room) {
    size_t used = 0;
    for (int64_t i = 0; i < core->tree_count && used < room; i++) {
        const struct tree *t = &core->trees[i];
        const struct segment *s = t->streams[MAIN].first ? t->streams[MAIN].first : t->streams[CONTROL].first;
        if (!s) continue;
        int64_t lowest = lowest_missing(t, s);
        char name[24];
        snprintf(name, sizeof name, "%lld", (long long)lowest);
        int wrote = snprintf(to + used, room - used, "%stree %lld (to %s): %lld of %lld results, under way %lld, the first is chunk %s",
                             used ? "; " : "", (long long)t->spec.tree, t->spec.destination, (long long)s->left,
                             (long long)s->count, (long long)t->under_way, lowest < 0 ? "none" : name);
        if (wrote < 0) return;
        used += (size_t)wrote;
    }
}

void core_end_calls(struct nf_core *core, int64_t status) {
    struct nf_call *call;
    for (int behind = 0; (call = core->first); behind = 1) {
        if (behind) snprintf(call->outcome.message, NF_MESSAGE_BYTES, "an earlier call failed");
        call_restore(call);
        over(core, behind ? NF_ABORTED : status);
    }
}

/* A call failed half-way: chunk numbers differ between workers from here on, so nothing more goes in this epoch, and calls
 * behind it cannot go on. Results that are kept stay so. */
void core_fail(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first;
    if (call && call->part == CLOSING) succeed(core, call->result); /* its results are here, and kept */
    call = core->first;
    if (call && status == NF_TIMEOUT) describe_missing(core, call->outcome.message, sizeof call->outcome.message);
    core->totals.broken = core->assignment.epoch > 0;
    core->totals.worn = 0;
    core->strange |= status == NF_STRAGGLED;
    stop_trees(core);
    core_end_calls(core, status);
}

void nf_core_abort(struct nf_core *core) {
    if (core->first) core_fail(core, NF_ABORTED);
}

void nf_core_no_epoch(struct nf_core *core) {
    if (core->first && core->totals.worn) core_fail(core, NF_EXHAUSTED);
}

/* The first call has the results of a part. */
static int go_on(struct nf_core *core, struct nf_call *call) {
    if (call->part == REPEAT && repeat_is_due(call)) {
        call->part = KINDS;
        return begin_part(core, call, KINDS);
    }
    if (call->part == REPEAT) {
        call->result = repeat_join(call);
        if (call_bytes(call) <= NF_KEPT_BYTES) call->part = CLOSING;
    }
    if (call->part == HAND) {
        hand_end(call);
        call->epoch = 0; /* its scales are another epoch's */
    }
    if (call->part == HAND || call->part == CLOSING) {
        succeed(core, call->result);
        return 1;
    }
    call->part++;
    return begin_part(core, call, (enum part)call->part);
}

static int step(struct nf_core *core, double now) {
    if (!core->together) return resume_come_together(core);
    struct nf_call *call = core->first;
    if (call && call->part != WAITING && call->opened) {
        if (call->wrong != NF_PENDING) {
            core_fail(core, call->wrong);
            return 0;
        }
        if (!call_divided(call)) return begin_deal(core, call, now);
        if (call->outstanding == 0) return go_on(core, call);
    }
    if (core->hand_next < core->hand_end) return resume_hand_on(core);
    return begin_next(core);
}

/* Lets calls go on as far as they can without further results. */
static void advance(struct nf_core *core, double now) {
    while (core->tree_count && !core->totals.worn && step(core, now)) {
    }
}

/* What the result of a chunk says beside its lanes. A worker sends a chunk of a call only if it has the results of the call
 * `depth` before, and a closing chunk only if it has those of the call. */
static void note_progress(struct nf_core *core, const struct segment *s) {
    if ((s->part == OPENING || s->part == DATA) && !s->call->holders) core_prove(core, s->call->outcome.number - core->depth + 1);
    if (s->part == CLOSING) core_prove(core, s->call->outcome.number + 1);
}

static void take(struct nf_core *core, struct tree *t, struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *call = s->call;
    int64_t status = call_take(t, s, chunk, h, now);
    if (s->part == OPENING) tree_unhold(t, call, DATA);
    if (status == NF_PENDING) note_progress(core, s);
    if (s->left == 0) {
        call->outstanding--;
        free(s);
    }
    if (status == NF_PENDING) return;
    if (call->kept)
        core_fail(core, status);
    else if (call->wrong == NF_PENDING || status == NF_MISMATCH)
        call->wrong = status;
}

/* The others went on without this worker, and it cannot learn what they know. */
static void be_lapped(struct nf_core *core) {
    if (!core->together || !core->first) /* it has just come: all have to begin together */
        core->totals.worn = core->assignment.epoch;
    else
        core_fail(core, NF_STRAGGLED);
}

void nf_core_receive(struct nf_core *core, int64_t endpoint, const uint8_t *packet, int64_t length, int marked, double now) {
    if (length != core->packet_bytes) return;
    struct header *h = (struct header *)packet;
    uint16_t number = __builtin_bswap16(h->tree);
    for (int64_t i = 0; i < core->tree_count; i++) {
        struct tree *t = &core->trees[i];
        if (t->spec.tree != number || t->spec.endpoint != endpoint) continue;
        int64_t chunk;
        struct segment *s = tree_accept(t, h, marked, now, &chunk);
        if (s) take(core, t, s, chunk, h, now);
        else if (t->lapped) be_lapped(core);
        return;
    }
}

static void look_at_deadlines(struct nf_core *core, double now) {
    for (struct nf_call *call = core->first; call; call = call->next) {
        if (now < call->request.deadline) continue;
        if (call->part == CLOSING)
            succeed(core, call->result);
        else
            core_fail(core, NF_TIMEOUT);
        return;
    }
}

void nf_core_turn(struct nf_core *core, double now) {
    for (int64_t i = 0; i < core->tree_count; i++) tree_account(&core->trees[i], now);
    advance(core, now);
    look_at_deadlines(core, now); /* what has arrived counts */
}

int64_t nf_core_send(struct nf_core *core, struct nf_out *out, int64_t room, double now) {
    int64_t n = 0;
    for (int64_t i = 0; i < core->tree_count && n < room; i++)
        n += tree_send(&core->trees[i], call_fill, out + n, room - n, now);
    return n;
}

double nf_core_next(struct nf_core *core, double now) {
    double next = NF_UNKNOWN;
    for (int64_t i = 0; i < core->tree_count; i++) {
        double due = tree_next(&core->trees[i], now);
        if (due < next) next = due;
    }
    for (const struct nf_call *call = core->first; call; call = call->next)
        if (call->request.deadline < next) next = call->request.deadline;
    return next;
}

double nf_core_gather(const struct nf_core *core) {
    double longest = core->assignment.timing.gather, seconds = 0;
    for (int64_t i = 0; i < core->tree_count; i++) {
        double here = tree_gather(&core->trees[i]);
        if (here > seconds) seconds = here;
    }
    return seconds < longest ? seconds : longest;
}

struct nf_totals nf_core_totals(const struct nf_core *core) {
    struct nf_totals totals = core->totals;
    totals.owing = core->tree_count && core->kept && !core->together;
    for (const struct nf_call *call = core->kept; call; call = call->next) totals.owing |= call->outstanding > 0;
    for (int64_t i = 0; i < core->tree_count; i++) {
        totals.retransmits += core->trees[i].retransmits;
        totals.late += core->trees[i].late;
    }
    return totals;
}

int64_t nf_core_trees(const struct nf_core *core) { return core->tree_count; }

struct nf_tree_report nf_core_report(const struct nf_core *core, int64_t tree) {
    const struct tree *t = &core->trees[tree];
    return (struct nf_tree_report){t->spec.tree,  nf_window_size(&t->window), t->window.limit, t->retransmits, t->probes,
                                   t->results, t->marked, t->rtt.smoothed, t->rtt.least};
}
