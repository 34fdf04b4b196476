/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "resume.h"

#include <stdio.h>
#include <string.h>

#include "begin.h"
#include "core_state.h"
#include "hand.h"

/* A vote is a half of a lane, as there are fewer than 2^15 workers. */
void resume_fill(const struct nf_call *c, struct header *h) {
    if (c->digit < DIGITS) {
        h->exponent = (uint8_t)c->said;
        return;
    }
    if (!c->strangers) lanes_of(h)[c->ballot / 2] = __builtin_bswap32(1u << 16 * (c->ballot % 2));
    if (!c->newcomers) return;
    for (int i = 0; i < NUMBERS; i++) {
        lanes_of(h)[NUMBERS + i] = __builtin_bswap32((uint32_t)c->sizes[i]);
        lanes_of(h)[2 * NUMBERS + 1 + i] = __builtin_bswap32((uint32_t)c->missed[i]);
    }
    lanes_of(h)[2 * NUMBERS] = __builtin_bswap32((uint32_t)c->strangers);
}

void resume_take(struct nf_call *c, const struct tree *t, struct header *h) {
    if (c->digit < DIGITS) {
        c->told = h->exponent;
        return;
    }
    for (int64_t i = 0; i < VOTES_MAX; i++) {
        uint32_t lane = i / 2 < t->lanes ? __builtin_bswap32(lanes_of(h)[i / 2]) : 0;
        c->votes[i] = lane >> 16 * (i % 2) & 0xFFFF;
    }
    if (!c->newcomers) return;
    for (int i = 0; i < NUMBERS; i++) {
        c->sizes[i] = __builtin_bswap32(lanes_of(h)[NUMBERS + i]);
        c->missed[i] = __builtin_bswap32(lanes_of(h)[2 * NUMBERS + 1 + i]);
    }
    c->strangers = __builtin_bswap32(lanes_of(h)[2 * NUMBERS]);
}

/* The results of a call that `holders` have and others lack. */
static int begin_hand(struct nf_core *core, int64_t number, int64_t holders) {
    int holding = number < core->number;
    struct nf_call *call = holding ? core->kept : core->first;
    for (int64_t n = core->number; !holding && call && n < number; n++) call = call->next;
    while (holding && call && call->outcome.number < number) call = call->next;
    if (!call || (holding && !call->input)) {
        core_fail(core, NF_OUT_OF_STEP);
        return 0;
    }
    call->outcome.number = number;
    hand_begin(call, &core->assignment, core->joint.strangers + core->joint.missed[number % NUMBERS], holders, holding);
    return begin_call(core, call, HAND);
}

/* Calls are told apart modulo `calls`. Who has been in his call in an earlier epoch may be given its results; anybody else's
 * call is a new one, so nobody may have its results. */
static int64_t ballot(const struct nf_core *core, int64_t calls) {
    const struct nf_call *call = core->first;
    return core->number % calls + (call && call->epoch ? 0 : calls);
}

/* What others hand over takes its chunks; this worker, who came later, adds nothing to them. */
static int let_pass(struct nf_core *core, int64_t number) {
    int64_t holders = core->hand_holders[number % NUMBERS];
    int64_t counts[] = {1, core->joint.sizes[number % NUMBERS] / holders};
    for (int i = 0; i < 2; i++) {
        struct segment s = {.call = &core->joint, .part = STRANGE, .count = counts[i], .stream = MAIN};
        if (counts[i] <= 0) {
            core_fail(core, NF_OUT_OF_STEP);
            return 0;
        }
        if (!begin_segment(core, &core->trees[0], &s)) return 0;
    }
    return 1;
}

/* Each worker has named the first call whose results it lacks. As none begins a call before it has the results of the one
 * `depth` before, these are at most so many apart. What anybody has is handed over; then all go on with the first call that
 * nobody has. */
static int judge_votes(struct nf_core *core) {
    const int64_t *votes = core->joint.votes;
    int64_t most = core->depth_most, calls = 2 * most + 1, lowest = INT64_MAX, highest = -1, newest = INT64_MAX;
    int64_t strangers = core->joint.strangers, count = strangers;
    int strange = core->joint.newcomers && core->strange;
    if (strange) core->number = core->came = core->joint.newest;
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
        core_fail(core, NF_OUT_OF_STEP);
        return 0;
    }
    int64_t past = core->assignment.workers - strangers;
    for (int64_t number = lowest; number < highest; number++) {
        past -= votes[number % calls] + votes[number % calls + calls];
        core->hand_holders[number % calls] = past - (core->joint.newcomers ? core->joint.missed[number % calls] : 0);
        if (core->hand_holders[number % calls] <= 0) { /* who had it is gone */
            core_fail(core, NF_OUT_OF_STEP);
            return 0;
        }
    }
    core->together = 1;
    core->strange = 0;
    core_prove(core, strange ? highest : lowest);
    core->hand_next = lowest;
    core->hand_end = highest;
    return 1;
}

int resume_hand_on(struct nf_core *core) {
    int64_t number = core->hand_next, ahead = core->number;
    if (number < core->came) {
        core->hand_next++;
        return let_pass(core, number);
    }
    for (const struct nf_call *call = core->first; call; call = call->next) ahead++;
    if (number >= ahead) return 0;
    core->hand_next++;
    return begin_hand(core, number, core->hand_holders[number % (2 * core->depth_most + 1)]);
}

/* Exponents travel as the greatest of all workers', so digit by digit they say the greatest number. */
static int ask_digit(struct nf_core *core) {
    struct nf_call *joint = &core->joint;
    int64_t shift = 8 * (DIGITS - 1 - joint->digit);
    joint->said = core->number >> (shift + 8) == joint->newest ? core->number >> shift & 0xFF : 0;
    joint->part = RESUME;
    begin_part(core, joint, RESUME);
    return 0;
}

/* Votes tell only few calls apart. Who is further behind than these was left, and goes on as a stranger. */
static int take_digit(struct nf_core *core) {
    struct nf_call *joint = &core->joint;
    joint->newest = joint->newest << 8 | joint->told;
    if (++joint->digit < DIGITS) return ask_digit(core);
    joint->part = WAITING;
    if (!core->strange && core->number + core->depth_most < joint->newest) {
        core->strange = 1;
        core_end_calls(core, NF_STRAGGLED);
    }
    return 1;
}

int resume_come_together(struct nf_core *core) {
    struct nf_call *joint = &core->joint;
    if (joint->part == RESUME && joint->outstanding) return 0;
    if (joint->part == RESUME) return joint->digit < DIGITS ? take_digit(core) : judge_votes(core);
    if (!core->first && (core->assignment.quorum || !core->kept)) return 0;
    joint->newcomers = takes_newcomers(&core->assignment);
    if (joint->digit < DIGITS) return ask_digit(core);
    joint->part = RESUME;
    joint->ballot = ballot(core, 2 * core->depth_most + 1);
    joint->strangers = joint->newcomers && core->strange;
    memset(joint->sizes, 0, sizeof joint->sizes);
    memset(joint->missed, 0, sizeof joint->missed);
    for (int64_t number = core->number - core->depth_most; number < core->number; number++)
        if (!joint->strangers && number >= 0 && number < core->came) joint->missed[number % NUMBERS] = 1;
    for (const struct nf_call *call = core->kept; call && joint->newcomers && !joint->strangers; call = call->next)
        if (call->input && call->outcome.number >= core->number - core->depth_most)
            joint->sizes[call->outcome.number % NUMBERS] = hand_chunks(call, &core->trees[0]);
    begin_part(core, joint, RESUME);
    return 0;
}
