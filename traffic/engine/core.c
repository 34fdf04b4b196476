/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The course of calls, docs/protocol.md, section 5.3: once in each epoch the workers tell each other in which call they are;
 * then opening, data, kinds, repetition, closing. After the closing result everybody is known to have everything: so a
 * worker that is done with a call is never needed for it again, and when the epoch changes, either all that are still inside
 * a call repeat it, or none. */

#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

struct nf_core {
    struct nf_assignment assignment; /* epoch 0: none yet */
    struct tree trees[NF_TREES_MAX];
    int64_t tree_count, packet_bytes;
    struct nf_call *first, *last; /* those that are not over, in their order */
    int64_t number;               /* of the first */
    int64_t generation;
    int agreed;                   /* whether the workers know of each other in which call they are */
    struct nf_totals totals;
};

struct nf_core *nf_core_create(void) { return calloc(1, sizeof(struct nf_core)); }

static void free_trees(struct nf_core *core) {
    for (int64_t i = 0; i < core->tree_count; i++) {
        core->totals.retransmits += core->trees[i].retransmits;
        tree_free(&core->trees[i]);
    }
    core->tree_count = 0;
    core->generation++;
}

int64_t nf_core_generation(const struct nf_core *core) { return core->generation; }

void nf_core_destroy(struct nf_core *core) {
    free_trees(core);
    while (core->first) {
        struct nf_call *call = core->first;
        core->first = call->next;
        call_free(call);
    }
    free(core);
}

int nf_core_assign(struct nf_core *core, const struct nf_assignment *a, double now) {
    free_trees(core);
    core->assignment = *a;
    core->packet_bytes = NF_HEADER_BYTES + 4 * a->lanes;
    for (int64_t i = 0; i < a->tree_count; i++) {
        core->tree_count = i + 1;
        if (tree_start(&core->trees[i], a, i, now)) return -1;
    }
    core->agreed = 0;
    core->totals.broken = core->totals.worn = 0;
    struct nf_call *call = core->first;
    if (call && call->part != WAITING) {
        call->outstanding = 0;
        call->part = WAITING;
        core->totals.restarts++;
    }
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
    call_free(call);
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

static void describe_missing(const struct nf_core *core, char *to, size_t room) {
    size_t used = 0;
    for (int64_t i = 0; i < core->tree_count && used < room; i++) {
        const struct tree *t = &core->trees[i];
        if (!t->first) continue;
        int64_t first = -1;
        for (int64_t k = 0; k < t->count; k++) {
            const struct channel *c = &t->channels[k];
            if (c->busy && (first < 0 || c->due - t->first->base < first)) first = c->due - t->first->base;
        }
        char name[24];
        snprintf(name, sizeof name, "%lld", (long long)first);
        int wrote = snprintf(to + used, room - used, "%stree %lld (to %s): %lld of %lld results, under way %lld, the first is chunk %s",
                             used ? "; " : "", (long long)t->spec.tree, t->spec.destination, (long long)t->first->left,
                             (long long)t->first->count, (long long)t->under_way, first < 0 ? "none" : name);
        if (wrote < 0) return;
        used += (size_t)wrote;
    }
}

/* The first call failed half-way: chunk numbers differ between workers from here on, so nothing more goes in this epoch,
 * and calls behind it cannot go on. */
static void fail(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first;
    if (status == NF_TIMEOUT) describe_missing(core, call->outcome.message, sizeof call->outcome.message);
    core->totals.broken = core->assignment.epoch > 0;
    core->totals.worn = 0;
    core->agreed = 0;
    free_trees(core);
    call_restore(call);
    over(core, status);
    while (core->first) {
        snprintf(core->first->outcome.message, NF_MESSAGE_BYTES, "an earlier call failed");
        over(core, NF_ABORTED);
    }
}

void nf_core_abort(struct nf_core *core) {
    if (core->first) fail(core, NF_ABORTED);
}

void nf_core_no_epoch(struct nf_core *core) {
    if (core->first && core->totals.worn) fail(core, NF_EXHAUSTED);
}

static void succeed(struct nf_core *core, int64_t status) {
    struct nf_call *call = core->first;
    if (status != NF_DONE) call_restore(call);
    core->totals.overflows += call->overflows;
    core->number++;
    over(core, status);
}

/* In a new epoch: does this call have to be done (again)? Each worker named the first call whose results it lacks. Nobody
 * ends a call before everybody has its results, so only this call and the next can be named; if anybody lacks this one, all
 * do it. Gives the next part. */
static enum part judge_votes(struct nf_core *core, struct nf_call *call) {
    int64_t here = call->outcome.number % NF_CALLS, following = (here + 1) % NF_CALLS, named = 0;
    for (int i = 0; i < NF_CALLS; i++) named |= (int64_t)(call->votes[i] != 0) << i;
    int wrong = (named & ~((int64_t)1 << here | (int64_t)1 << following)) != 0;
    if (wrong || (!call->complete && !(named >> here & 1))) {
        call->outcome.seen = named;
        fail(core, NF_OUT_OF_STEP);
        return OVER;
    }
    core->agreed = 1;
    if (!(named >> here & 1)) {
        succeed(core, call->result);
        return OVER;
    }
    call->complete = 0;
    call->overflows = 0;
    return OPENING;
}

static enum part after(struct nf_core *core, struct nf_call *call) {
    switch (call->part) {
    case WAITING:
        return core->agreed ? OPENING : RESUME;
    case RESUME:
        return judge_votes(core, call);
    case REPEAT:
        call->result = call_join(call);
        call->complete = 1;
        return CLOSING;
    case CLOSING:
        succeed(core, call->result);
        return OVER;
    default:
        return (enum part)(call->part + 1);
    }
}

/* Gives the trees what a part consists of; 0: not possible (the call is over, or waits for an epoch). */
static int begin_part(struct nf_core *core, struct nf_call *call, enum part part) {
    call->part = part;
    for (int64_t i = 0; i < core->tree_count; i++) {
        struct tree *t = &core->trees[i];
        int64_t count = call_plan(call, part, t);
        if (count == 0) continue;
        struct segment *s = count < 0 ? NULL : malloc(sizeof *s);
        if (!s) {
            fail(core, NF_NO_MEMORY);
            return 0;
        }
        *s = (struct segment){.call = call, .part = part, .count = count};
        if (!tree_append(t, s)) {
            free(s);
            snprintf(call->outcome.message, NF_MESSAGE_BYTES,
                     "tree %lld: epoch %lld has %lld chunk numbers left and the call needs %lld",
                     (long long)t->spec.tree, (long long)t->epoch, (long long)(t->limit - t->end), (long long)count);
            if (call->epochs) /* a call that began with an epoch and used it up needs more than any epoch has */
                fail(core, NF_EXHAUSTED);
            else
                core->totals.worn = core->assignment.epoch;
            return 0;
        }
        call->outstanding++;
    }
    return 1;
}

/* Lets the first calls go on as far as they can without further results. */
static void advance(struct nf_core *core) {
    struct nf_call *call;
    while ((call = core->first) && core->tree_count && !core->totals.worn && call->outstanding == 0) {
        if (call->part == WAITING) {
            call->outcome.number = core->number;
            if (!call->own && call_cut(call, core->assignment.lanes)) {
                fail(core, NF_NO_MEMORY);
                return;
            }
            call_restart(call, &core->assignment);
            call->epochs += !core->agreed;
        }
        enum part next = after(core, call);
        if (next != OVER && !begin_part(core, call, next)) return;
    }
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
        if (!s) return;
        int64_t status = call_take(t, s, chunk, h);
        if (s->left == 0) {
            s->call->outstanding--;
            free(s);
        }
        if (status != NF_PENDING) fail(core, status);
        return;
    }
}

static void look_at_deadlines(struct nf_core *core, double now) {
    for (struct nf_call *call = core->first; call; call = call->next) {
        if (now < call->request.deadline) continue;
        fail(core, NF_TIMEOUT);
        return;
    }
}

void nf_core_turn(struct nf_core *core, double now) {
    for (int64_t i = 0; i < core->tree_count; i++) tree_account(&core->trees[i], now);
    advance(core);
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

int64_t nf_core_packet_bytes(const struct nf_core *core) { return core->packet_bytes; }

struct nf_totals nf_core_totals(const struct nf_core *core) {
    struct nf_totals totals = core->totals;
    for (int64_t i = 0; i < core->tree_count; i++) totals.retransmits += core->trees[i].retransmits;
    return totals;
}

int64_t nf_core_trees(const struct nf_core *core) { return core->tree_count; }

struct nf_tree_report nf_core_report(const struct nf_core *core, int64_t tree) {
    const struct tree *t = &core->trees[tree];
    return (struct nf_tree_report){t->spec.tree,  nf_window_size(&t->window), t->window.limit, t->retransmits, t->probes,
                                   t->rtt.smoothed, t->rtt.least};
}
