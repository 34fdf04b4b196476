/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "begin.h"

#include <stdio.h>
#include <stdlib.h>

#include "core_state.h"
#include "kind.h"

int begin_segment(struct nf_core *core, struct tree *t, const struct segment *of) {
    struct nf_call *call = of->call;
    struct segment *s = malloc(sizeof *s);
    if (!s) {
        core_fail(core, NF_NO_MEMORY);
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
            core_fail(core, NF_EXHAUSTED);
        else
            core->totals.worn = core->assignment.epoch;
        return 0;
    }
    call->outstanding++;
    return 1;
}

int begin_part(struct nf_core *core, struct nf_call *call, enum part part) {
    for (int64_t i = 0; i < core->tree_count; i++) {
        int64_t count = call_plan(call, part, &core->trees[i]);
        if (count < 0) {
            core_fail(core, NF_NO_MEMORY);
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

/* begin_part's data with the last lap that is divided; the rows that waited for that go. */
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

int begin_deal(struct nf_core *core, struct nf_call *call, double now) {
    if (call->balance->counted) {
        nf_balance_divide(call->balance, now);
        return begin_lap(core, call);
    }
    if (!nf_balance_due(call->balance)) return 0;
    nf_balance_vote(call->balance, now);
    return begin_part(core, call, VOTE);
}

int begin_call(struct nf_core *core, struct nf_call *call, enum part part) {
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
        if (k->epoch) kind_learn(k, &core->predictions, core->trees);
        k->epoch = 0;
    }
    core_forget_proven(core);
    if (!call->own && call_cut(call, core->assignment.lanes)) {
        core_fail(core, NF_NO_MEMORY);
        return 0;
    }
    call_restart(call, &core->assignment);
    if (call_spread(call, &core->assignment, core->trees)) {
        core_fail(core, NF_NO_MEMORY);
        return 0;
    }
    kind_predict(call, &core->predictions, core->trees);
    call->epoch = core->assignment.epoch;
    return begin_call(core, call, DATA);
}

int begin_next(struct nf_core *core) {
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
