/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The course of calls, docs/protocol.md, section 5.3. Once in each epoch the workers tell each other in which call they are;
 * results that some have and others lack are handed over; then calls begin in their order, a few at a time, and end in it.
 * A worker keeps the results of the last calls until it knows that all have them. */

#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "hand.h"

struct nf_core {
    struct nf_assignment assignment; /* epoch 0: none yet */
    struct tree trees[NF_TREES_MAX];
    int64_t tree_count, packet_bytes;
    struct nf_call *first, *last; /* those that are not over, in their order */
    struct nf_call *kept;         /* those that are, and that others may ask for, in their order */
    int64_t number;               /* of the first that is not over: the results of all before are here */
    int64_t proven;               /* the results of all before are at all workers */
    int64_t depth, depth_most;    /* calls under way in this epoch, and in any */
    int64_t generation;
    int together;         /* whether the workers know of each other in which call they are */
    int used;             /* a call was begun in this epoch */
    int strange;          /* with a quorum: this worker was in no call, or left: it takes up the others' */
    int64_t hand_next, hand_end;      /* calls that are still to be handed over */
    int64_t hand_holders[NUMBERS];
    struct nf_call joint; /* carries the resume chunk */
    struct nf_predictions predictions;
    struct nf_totals totals;
};

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

/* Lets the results go that nobody can ask for any more, and the calls themselves when their scales are learned. */
static void forget_proven(struct nf_core *core) {
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

static void prove(struct nf_core *core, int64_t number) {
    if (number <= core->proven) return;
    core->proven = number;
    forget_proven(core);
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
    forget_proven(core);
}

int nf_core_assign(struct nf_core *core, const struct nf_assignment *a, double now) {
    struct nf_call *call = core->first;
    if (call && call->part == CLOSING) succeed(core, call->result);
    call = core->first;
    core->totals.restarts += call && call->part != WAITING;
    stop_trees(core);
    for (call = core->kept; call; call = call->next) call->epoch = 0; /* scales of another epoch do not count */
    forget_proven(core);
    nf_predictions_forget(&core->predictions);
    core->assignment = *a;
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

/* A call failed half-way: chunk numbers differ between workers from here on, so nothing more goes in this epoch, and calls
 * behind it cannot go on. Results that are kept stay so. */
static void fail(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first;
    if (call && call->part == CLOSING) succeed(core, call->result); /* its results are here, and kept */
    call = core->first;
    if (call && status == NF_TIMEOUT) describe_missing(core, call->outcome.message, sizeof call->outcome.message);
    core->totals.broken = core->assignment.epoch > 0;
    core->totals.worn = 0;
    core->strange |= status == NF_STRAGGLED;
    stop_trees(core);
    for (int behind = 0; (call = core->first); behind = 1) {
        if (behind) snprintf(call->outcome.message, NF_MESSAGE_BYTES, "an earlier call failed");
        call_restore(call);
        over(core, behind ? NF_ABORTED : status);
    }
}

void nf_core_abort(struct nf_core *core) {
    if (core->first) fail(core, NF_ABORTED);
}

void nf_core_no_epoch(struct nf_core *core) {
    if (core->first && core->totals.worn) fail(core, NF_EXHAUSTED);
}

/* Gives a tree chunks of a part; 0: not possible (the call is over, or waits for an epoch). */
static int begin_segment(struct nf_core *core, struct tree *t, const struct segment *of) {
    struct nf_call *call = of->call;
    struct segment *s = malloc(sizeof *s);
    if (!s) {
        fail(core, NF_NO_MEMORY);
        return 0;
    }
    *s = *of;
    if (!tree_append(t, s)) {
        free(s);
        const struct stream *r = stream_of(t, of->stream);
        snprintf(call->outcome.message, NF_MESSAGE_BYTES,
                 "tree %lld: epoch %lld has %lld chunk numbers left and the call needs %lld",
                 (long long)t->spec.tree, (long long)t->epoch, (long long)(r->limit - r->end), (long long)of->count);
        if (call->alone) /* what does not fit into an epoch of its own fits into none */
            fail(core, NF_EXHAUSTED);
        else
            core->totals.worn = core->assignment.epoch;
        return 0;
    }
    call->outstanding++;
    return 1;
}

/* Gives the trees what a part consists of; 0 as above. */
static int begin_part(struct nf_core *core, struct nf_call *call, enum part part) {
    for (int64_t i = 0; i < core->tree_count; i++) {
        int64_t count = call_plan(call, part, &core->trees[i]);
        if (count < 0) {
            fail(core, NF_NO_MEMORY);
            return 0;
        }
        struct segment s = {.call = call, .part = part, .count = count, .first = call->again[i].first};
        s.stream = part == OPENING || part == DATA || part == HAND ? MAIN : CONTROL;
        s.held = part == DATA && waits_for_opening(call);
        s.hurry = core->assignment.quorum && part >= OPENING && !call->holders ? &call->hurry : NULL;
        if (count && !begin_segment(core, &core->trees[i], &s)) return 0;
    }
    return 1;
}

/* The same with the last lap that is divided; the rows that waited for that go. */
static int begin_lap(struct nf_core *core, struct nf_call *call) {
    int64_t lap = call->balance->divided - 1;
    for (int64_t i = 0; i < core->tree_count; i++) {
        struct tree *t = &core->trees[i];
        struct nf_run run = call_run(call, i, lap);
        int64_t tail = call_divided(call) || run.first == run.last ? 0 : rows_ahead(t);
        tree_unhold(t, call, TAIL);
        struct segment s = {.call = call, .part = DATA, .stream = MAIN, .first = run.first, .lap = lap};
        s.count = run.last - run.first - tail;
        s.held = lap == 0 && waits_for_opening(call);
        if (s.count && !begin_segment(core, t, &s)) return 0;
        s.part = TAIL;
        s.first += s.count;
        s.count = tail;
        s.held = 1;
        if (s.count && !begin_segment(core, t, &s)) return 0;
    }
    return 1;
}

/* Lets a call that is balanced go on; gives whether there is more to do at once. */
static int deal(struct nf_core *core, struct nf_call *call, double now) {
    if (call->balance->counted) {
        nf_balance_divide(call->balance, now);
        return begin_lap(core, call);
    }
    if (!nf_balance_due(call->balance)) return 0;
    nf_balance_vote(call->balance, now);
    return begin_part(core, call, VOTE);
}

static int begin_call(struct nf_core *core, struct nf_call *call, enum part part) {
    call->part = call->kept ? call->part : part;
    call->alone = !core->used;
    core->used = 1;
    if (!begin_part(core, call, OPENING)) return 0;
    return part == DATA && call->balance ? begin_lap(core, call) : begin_part(core, call, part);
}

/* Does a call in the usual way. All workers have done those `depth` before it, so of these alone it is known what everybody
 * has learned. */
static int begin_new(struct nf_core *core, struct nf_call *call) {
    for (struct nf_call *k = core->kept; k && k->outcome.number <= call->outcome.number - core->depth; k = k->next) {
        if (k->epoch) call_learn(k, &core->predictions, core->trees);
        k->epoch = 0;
    }
    forget_proven(core);
    if (!call->own && call_cut(call, core->assignment.lanes)) {
        fail(core, NF_NO_MEMORY);
        return 0;
    }
    call_restart(call, &core->assignment);
    if (call_spread(call, &core->assignment, core->trees)) {
        fail(core, NF_NO_MEMORY);
        return 0;
    }
    call_predict(call, &core->predictions, core->trees);
    call->epoch = core->assignment.epoch;
    return begin_call(core, call, DATA);
}

static int begin_next(struct nf_core *core) {
    int64_t ahead = 0;
    struct nf_call *call = core->first;
    for (; call && call->part != WAITING; call = call->next) {
        if (!call_divided(call)) return 0; /* what is behind it in the streams has no place yet */
        ahead++;
    }
    if (!call || ahead >= core->depth) return 0;
    call->outcome.number = core->number + ahead;
    return begin_new(core, call);
}

/* The results of a call that `holders` have and others lack. */
static int begin_hand(struct nf_core *core, int64_t number, int64_t holders) {
    int holding = number < core->number;
    struct nf_call *call = holding ? core->kept : core->first;
    for (int64_t n = core->number; !holding && call && n < number; n++) call = call->next;
    while (holding && call && call->outcome.number < number) call = call->next;
    if (!call || (holding && !call->input)) {
        fail(core, NF_OUT_OF_STEP);
        return 0;
    }
    call->outcome.number = number;
    hand_begin(call, &core->assignment, holders, holding);
    return begin_call(core, call, HAND);
}

/* Calls are told apart modulo `calls`. Who has been in his call in an earlier epoch may be given its results; anybody else's
 * call is a new one, so nobody may have its results. */
static int64_t ballot(const struct nf_core *core, int64_t calls) {
    const struct nf_call *call = core->first;
    return core->number % calls + (call && call->epoch ? 0 : calls);
}

/* A worker that was in none of the others' calls goes on with the first that nobody has: it counts from where they do, modulo
 * the numbers that are told apart. */
static void take_number(struct nf_core *core) {
    const struct nf_call *joint = &core->joint;
    int64_t here = 0;
    for (int64_t n = 0; n < NUMBERS; n++) {
        int after = 0; /* votes for any of the next ones */
        for (int64_t k = 1; k <= NF_UNDER_WAY; k++)
            after |= joint->votes[(n + k) % NUMBERS] + joint->votes[(n + k) % NUMBERS + NUMBERS] > 0;
        if (joint->votes[n] + joint->votes[n + NUMBERS] > 0 && !after) here = n;
    }
    int64_t others = joint->strangers < core->assignment.workers ? NUMBERS : 0; /* room for lower ones */
    if (core->number < others) core->number = others;
    while (core->number % NUMBERS != here) core->number++;
}

/* What others hand over takes its chunks; this worker adds nothing to them. */
static int let_be_handed(struct nf_core *core) {
    core->strange = 0;
    for (; core->hand_next < core->hand_end; core->hand_next++) {
        int64_t at = core->hand_next % NUMBERS, holders = core->hand_holders[at];
        int64_t counts[] = {1, holders > 0 ? core->joint.sizes[at] / holders : 0};
        for (int i = 0; i < 2; i++) {
            struct segment s = {.call = &core->joint, .part = STRANGE, .count = counts[i], .stream = MAIN};
            if (counts[i] <= 0) {
                fail(core, NF_OUT_OF_STEP);
                return 0;
            }
            if (!begin_segment(core, &core->trees[0], &s)) return 0;
        }
    }
    return 1;
}

/* Each worker has named the first call whose results it lacks. As none begins a call before it has the results of the one
 * `depth` before, these are at most so many apart. What anybody has is handed over; then all go on with the first call that
 * nobody has. */
static int judge_votes(struct nf_core *core) {
    const int64_t *votes = core->joint.votes;
    int64_t most = core->depth_most, calls = 2 * most + 1, lowest = INT64_MAX, highest = -1, newest = INT64_MAX;
    int64_t strangers = core->assignment.quorum ? core->joint.strangers : 0, count = strangers;
    int strange = core->assignment.quorum && core->strange;
    if (strange) take_number(core);
    for (int64_t number = core->number - most; number <= core->number + most; number++) {
        int64_t lane = (number + calls) % calls, here = votes[lane] + votes[lane + calls];
        if (!here) continue;
        count += here;
        if (number < lowest) lowest = number;
        if (votes[lane + calls] && newest == INT64_MAX) newest = number;
        highest = number;
    }
    if (core->assignment.quorum) newest = INT64_MAX; /* sums went without those who had not begun */
    if (strangers == core->assignment.workers) lowest = highest = core->number;
    if (count != core->assignment.workers || lowest < 0 || highest - lowest > most || newest < highest) {
        if (core->first)
            snprintf(core->first->outcome.message, NF_MESSAGE_BYTES, "it is in call %lld, others are in calls %lld to %lld",
                     (long long)core->number, (long long)lowest, (long long)highest);
        fail(core, NF_OUT_OF_STEP);
        return 0;
    }
    core->together = 1;
    prove(core, strange ? highest : lowest);
    int64_t holders = core->assignment.workers - strangers;
    core->hand_next = lowest;
    core->hand_end = highest;
    for (int64_t number = lowest; number < highest; number++) {
        holders -= votes[number % calls] + votes[number % calls + calls];
        core->hand_holders[number % calls] = holders;
    }
    if (strange) return let_be_handed(core);
    return 1;
}

/* The next call that is handed over; a worker that lacks it may still have to be asked for it by its program. */
static int hand_on(struct nf_core *core) {
    int64_t number = core->hand_next, ahead = core->number;
    for (const struct nf_call *call = core->first; call; call = call->next) ahead++;
    if (number >= ahead) return 0;
    core->hand_next++;
    return begin_hand(core, number, core->hand_holders[number % (2 * core->depth_most + 1)]);
}

/* The resume chunk; gives whether there is more to do at once. */
static int come_together(struct nf_core *core) {
    struct nf_call *joint = &core->joint;
    if (joint->part == RESUME) return joint->outstanding == 0 && judge_votes(core);
    int64_t quorum = core->assignment.quorum;
    if (!core->first && (quorum || !core->kept)) return 0;
    joint->part = RESUME;
    joint->ballot = ballot(core, 2 * core->depth_most + 1);
    joint->quorum = quorum;
    joint->strangers = quorum && core->strange;
    memset(joint->sizes, 0, sizeof joint->sizes);
    for (const struct nf_call *call = core->kept; call && quorum && !core->strange; call = call->next)
        if (call->input && call->outcome.number >= core->number - core->depth_most)
            joint->sizes[call->outcome.number % NUMBERS] = hand_chunks(call, &core->trees[0]);
    begin_part(core, joint, RESUME);
    return 0;
}

/* The first call has the results of a part. */
static int go_on(struct nf_core *core, struct nf_call *call) {
    if (call->part == REPEAT) {
        call->result = call_join(call);
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
    if (!core->together) return come_together(core);
    struct nf_call *call = core->first;
    if (call && call->part != WAITING && call->opened) {
        if (call->wrong != NF_PENDING) {
            fail(core, call->wrong);
            return 0;
        }
        if (!call_divided(call)) return deal(core, call, now);
        if (call->outstanding == 0) return go_on(core, call);
    }
    if (core->hand_next < core->hand_end) return hand_on(core);
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
    if ((s->part == OPENING || s->part == DATA) && !s->call->holders) prove(core, s->call->outcome.number - core->depth + 1);
    if (s->part == CLOSING) prove(core, s->call->outcome.number + 1);
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
        fail(core, status);
    else if (call->wrong == NF_PENDING || status == NF_MISMATCH)
        call->wrong = status;
}

/* The others went on without this worker, and it cannot learn what they know. */
static void be_lapped(struct nf_core *core) {
    if (!core->together || !core->first) /* it has just come: all have to begin together */
        core->totals.worn = core->assignment.epoch;
    else
        fail(core, NF_STRAGGLED);
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
            fail(core, NF_TIMEOUT);
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

int64_t nf_core_packet_bytes(const struct nf_core *core) { return core->packet_bytes; }

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
