/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "numbers.h"

enum {
    EPOCH_PACKETS = 1 << 23, /* half of the PSNs: the other half is what was sent before */
    FLUSH_S = 30,
};

/* `epoch` is that of the links, `worn` the last one that the controller was asked to replace, `mismatched` the last one whose
 * ends told that this worker saw a mismatch, `lost` whether the last call ended with one. `last` has the sums of the
 * last call, for workers that did not get them before an epoch ended; `next` those that are coming. */
struct nr_worker {
    struct nr_options options;
    struct nr_control *control;
    struct nr_assignment assignment;
    struct nr_device device;
    struct nr_link links[NR_TREES];
    uint32_t epoch, worn, mismatched;
    bool connected, lost;
    uint64_t calls, packets;
    void *last, *next;
    size_t last_elements, last_room, next_room;
    struct nr_statistics statistics;
    char why[NR_WHY];
};

static void take_down(struct nr_worker *w) {
    for (uint32_t i = 0; i < NR_TREES; i++) nr_link_close(&w->links[i]);
    nr_device_close(&w->device);
    w->connected = false;
    w->packets = 0;
}

/* ---- epochs ---- */

static enum nr_error wear_out(struct nr_worker *w) {
    char line[64];
    if (w->worn == w->epoch) return NR_OK;
    w->worn = w->epoch;
    snprintf(line, sizeof line, "worn %u", w->worn);
    return nr_control_say(w->control, line);
}

/* New connections for a new epoch, and their ends told. */
static enum nr_error make_links(struct nr_worker *w, const struct nr_assignment *a) {
    take_down(w);
    w->assignment = *a;
    w->epoch = a->epoch;
    if (!a->integer && !a->floats && nr_blocks(a->lanes, a->workers) == 0) {
        snprintf(w->why, sizeof w->why, "%u lanes have no room for the exponents of %u workers", a->lanes, a->workers);
        return NR_ASSIGNMENT;
    }
    enum nr_error failed = nr_device_open(&w->device, &w->options, a->address, a->lanes, w->why);
    char line[64 + 64 * NR_TREES];
    unsigned long long calls = w->mismatched == a->epoch ? NR_MISMATCHED : w->calls;
    int said = snprintf(line, sizeof line, "ends %u %llu %u", a->epoch, calls, a->trees);
    for (uint32_t i = 0; i < a->trees && failed == NR_OK; i++) {
        struct nr_link *link = &w->links[i];
        failed = nr_link_make(link, &w->device, a->lanes, a->tree[i].window, w->options.first_psn, w->why);
        if (failed == NR_OK)
            said += snprintf(line + said, sizeof line - (size_t)said, " %u %u %u %u", a->tree[i].tree,
                             link->out->qp_num, link->in->qp_num, link->first_psn);
    }
    return failed == NR_OK ? nr_control_say(w->control, line) : failed;
}

static enum nr_error connect_links(struct nr_worker *w, const struct nr_ring *ring) {
    for (uint32_t i = 0; i < ring->trees; i++) {
        if (ring->trees != w->assignment.trees || ring->tree[i].tree != w->assignment.tree[i].tree) {
            snprintf(w->why, sizeof w->why, "the ring of epoch %u is of other trees", ring->epoch);
            return NR_ASSIGNMENT;
        }
        enum nr_error failed = nr_link_connect(&w->links[i], &w->device, &ring->tree[i], w->why);
        if (failed != NR_OK) return failed;
    }
    w->connected = true;
    w->statistics.epochs++;
    return NR_OK;
}

static enum nr_error wait_for_news(struct nr_worker *w, double until, const char *what) {
    double left = until - nr_now();
    struct pollfd watched = {nr_control_wake(w->control), POLLIN, 0};
    if (left <= 0 || poll(&watched, 1, left > 1000 ? 1000000 : (int)ceil(1000 * left)) == 0) {
        snprintf(w->why, sizeof w->why, "%s", what);
        return NR_TIMEOUT;
    }
    return NR_OK;
}

static bool room_for(void **buffer, size_t *room, size_t elements) {
    size_t wanted = 4 * (elements > 0 ? elements : 1);
    if (*room >= wanted) return true;
    void *larger = realloc(*buffer, wanted);
    if (larger == NULL) return false;
    *buffer = larger;
    *room = wanted;
    return true;
}

/* The call in `next` is complete: it is the last one now. */
static void complete(struct nr_worker *w, size_t elements) {
    void *buffer = w->last;
    size_t room = w->last_room;
    w->last = w->next, w->last_room = w->next_room, w->last_elements = elements;
    w->next = buffer, w->next_room = room;
    w->lost = false;
    w->calls++;
}

/* The links' epoch is the newest no more, or the job is over. */
static bool epoch_ended(void *given) {
    struct nr_worker *w = given;
    struct nr_assignment assignment;
    struct nr_ring ring;
    return nr_control_news(w->control, &assignment, &ring, w->why) != NR_OK || assignment.epoch != w->epoch;
}

static enum nr_outcome run(struct nr_worker *w, struct nr_call *call, double until) {
    uint64_t packets = nr_call_packets(call, &w->assignment, w->links);
    w->packets += packets;
    w->statistics.packets += packets;
    struct nr_watch watch = {nr_control_wake(w->control), epoch_ended, w};
    return nr_call_run(call, &w->assignment, &w->device, w->links, &watch, until, w->why);
}

/* The call ended with a mismatch at this worker, as it does at all. Who did not hear of it is in a call that the others have
 * behind them, and of whose sums they have none: it hears of it then. */
static void lose(struct nr_worker *w) {
    w->lost = true;
    w->calls++;
    w->last_elements = 0;
}

/* Some workers completed the last call before the epoch ended, others did not: one gives them its sums. `*wanted` is
 * what this worker waits for; NULL if it is done here. A call that these workers lost is one of other arrays for those who hear
 * of it so; then a new epoch puts them in step. */
static enum nr_outcome give_again(struct nr_worker *w, const struct nr_ring *ring, struct nr_call *wanted,
                                  double until) {
    bool ahead = w->calls == ring->most;
    if (ring->most - ring->least > 1 || (!ahead && wanted == NULL)) {
        snprintf(w->why, sizeof w->why, "this worker has completed %llu calls, another %llu: they cannot meet again",
                 (unsigned long long)w->calls, (unsigned long long)ring->most);
        return NR_OUT_OF_STEP;
    }
    size_t elements = ahead ? w->last_elements : wanted->elements;
    struct nr_call again = {.kind = NR_KIND_WORDS, .number = ring->least, .elements = elements};
    if (!room_for(&w->next, &w->next_room, elements)) return NR_BROKEN;
    if (w->assignment.rank == ring->giver) again.from = w->last;
    again.to = w->next;
    enum nr_outcome outcome = run(w, &again, until);
    if (outcome == NR_DONE && !ahead) complete(w, elements);
    if (outcome == NR_OUT_OF_STEP && !ahead) lose(w);
    return outcome == NR_OUT_OF_STEP && ahead && w->lost ? NR_BROKEN : outcome;
}

/* The others hear of it by this worker's ends in the next epoch, and where it does not come before the deadline, when they
 * meet again. What this worker says of it stays. */
static enum nr_error mismatch(struct nr_worker *w, double until) {
    char why[NR_WHY];
    memcpy(why, w->why, sizeof why);
    struct nr_assignment assignment;
    struct nr_ring ring;
    enum nr_error failed = wear_out(w);
    while (failed == NR_OK && (failed = nr_control_news(w->control, &assignment, &ring, w->why)) == NR_OK &&
           assignment.epoch == w->epoch)
        failed = wait_for_news(w, until, "");
    if (failed == NR_OK) {
        w->mismatched = assignment.epoch;
        make_links(w, &assignment);
    }
    memcpy(w->why, why, sizeof why);
    lose(w);
    return NR_MISMATCH;
}

/* Whether another worker saw a mismatch in the call that this one was in, too, when the epoch before ended. */
static bool others_mismatched(struct nr_worker *w, const struct nr_ring *ring) {
    if (ring->most != NR_MISMATCHED || w->mismatched == ring->epoch) return false;
    snprintf(w->why, sizeof w->why, "another worker saw that workers called with different arrays, or one skipped a call");
    return true;
}

/* Connected in the newest epoch. `*given`: `wanted`, the call that this worker is in, came from another worker. */
static enum nr_error be_connected(struct nr_worker *w, struct nr_call *wanted, bool *given, double until) {
    for (;;) {
        struct nr_assignment assignment;
        struct nr_ring ring;
        enum nr_error failed = nr_control_news(w->control, &assignment, &ring, w->why);
        if (failed != NR_OK) return failed;
        bool newest = w->epoch != 0 && assignment.epoch == w->epoch && w->worn != w->epoch;
        if (newest && w->connected) return NR_OK;
        if (assignment.epoch != 0 && assignment.epoch != w->epoch) {
            failed = make_links(w, &assignment);
        } else if (newest && ring.epoch == w->epoch) {
            failed = connect_links(w, &ring);
            if (failed == NR_OK && wanted != NULL && others_mismatched(w, &ring)) {
                lose(w);
                return NR_MISMATCH;
            }
            if (failed == NR_OK && ring.least != ring.most && ring.most != NR_MISMATCHED) {
                uint64_t before = w->calls;
                enum nr_outcome outcome = give_again(w, &ring, wanted, until);
                if (outcome == NR_OUT_OF_STEP) return NR_MISMATCH;
                if (outcome == NR_LATE) return NR_TIMEOUT;
                if (outcome == NR_BROKEN) failed = wear_out(w);
                *given = w->calls != before;
                if (*given) return NR_OK;
            }
        } else {
            const char *what = w->epoch == 0 ? "no assignment came: the job is queued, or the agent does not attend it"
                                             : "no connections came: another worker has not registered its own";
            failed = wait_for_news(w, until, what);
        }
        if (failed != NR_OK) return failed;
    }
}

/* ---- what users call ---- */

enum nr_error nr_join(struct nr_worker **worker, const struct nr_options *options, double seconds) {
    struct nr_worker *w = *worker = calloc(1, sizeof *w);
    if (w == NULL) return NR_MEMORY;
    w->options = *options;
    enum nr_error failed = nr_control_open(&w->control, options->agent, w->why);
    bool given = false;
    return failed == NR_OK ? be_connected(w, NULL, &given, nr_now() + seconds) : failed;
}

static enum nr_error check(struct nr_worker *w, enum nr_dtype dtype, enum nr_op op) {
    if ((dtype == NR_INT32) == w->assignment.integer && (op == NR_SUM || dtype == NR_FLOAT32)) return NR_OK;
    const char *numerics = w->assignment.integer ? "integer" : w->assignment.floats ? "float32" : "block";
    snprintf(w->why, sizeof w->why, "numerics of the job is %s: it adds %s arrays", numerics,
             w->assignment.integer ? "int32" : "float32");
    return NR_NUMBERS;
}

/* Sums that nobody may use are kept as words that no sum has, so that a worker which gets them from another one fails
 * as all others do. A sum of integers at a rail says it by itself. */
enum { LOST = 0xff };

static void spoil(struct nr_worker *w, const struct nr_call *call) {
    if (call->not_finite) memset(w->next, LOST, 4 * call->elements);
}

static void see_spoilt(const struct nr_worker *w, struct nr_call *call) {
    const int32_t *words = w->last;
    for (size_t i = 0; i < call->elements; i++) {
        if (call->kind == NR_KIND_BLOCK && words[i] == -1) call->not_finite = true;
        if (call->kind == NR_KIND_INTEGER && (words[i] == INT32_MAX || words[i] == INT32_MIN)) call->overflow = true;
    }
}

static enum nr_error finished(struct nr_worker *w, const struct nr_call *call, void *array) {
    if (call->overflow || call->not_finite) {
        snprintf(w->why, sizeof w->why, call->overflow ? "a sum is at the end of int32's range"
                                                       : "the arrays have a NaN or an infinity, which block does not take");
        return call->overflow ? NR_OVERFLOW : NR_NUMBERS;
    }
    memcpy(array, w->last, 4 * call->elements);
    w->statistics.calls++;
    return NR_OK;
}

enum nr_error nr_all_reduce(struct nr_worker *w, void *array, size_t elements, enum nr_dtype dtype, enum nr_op op,
                            double seconds) {
    double until = nr_now() + seconds;
    uint64_t most = w->options.epoch_packets;
    if (most == 0 || most > EPOCH_PACKETS) most = EPOCH_PACKETS;
    if (w->control == NULL) return NR_AGENT;
    for (;;) {
        enum nr_error failed = check(w, dtype, op);
        if (failed != NR_OK) return failed;
        enum nr_kind kind = dtype == NR_INT32 ? NR_KIND_INTEGER : w->assignment.floats ? NR_KIND_FLOATS : NR_KIND_BLOCK;
        struct nr_call call = {.kind = kind, .op = op,
                               .number = w->calls, .elements = elements, .from = array};
        bool given = false;
        failed = be_connected(w, &call, &given, until);
        if (failed != NR_OK) return failed;
        if (given) {
            see_spoilt(w, &call);
            return finished(w, &call, array);
        }
        uint64_t packets = nr_call_packets(&call, &w->assignment, w->links);
        if (packets > most) {
            snprintf(w->why, sizeof w->why, "%zu elements are more packets than an epoch has numbers", elements);
            return NR_ASSIGNMENT;
        }
        if (w->packets + packets > most) { /* all workers have sent as many, and come here too */
            if ((failed = wear_out(w)) != NR_OK) return failed;
            continue;
        }
        if (!room_for(&w->next, &w->next_room, elements)) return NR_MEMORY;
        call.to = w->next;
        switch (run(w, &call, until)) {
            case NR_DONE:
                spoil(w, &call);
                complete(w, elements);
                return finished(w, &call, array);
            case NR_NEWS: /* the call is begun again in the new epoch */
                break;
            case NR_LATE:
                wear_out(w);
                return NR_TIMEOUT;
            case NR_OUT_OF_STEP:
                return mismatch(w, until);
            case NR_BROKEN:
                if ((failed = wear_out(w)) != NR_OK) return failed;
                break;
        }
    }
}

const char *nr_why(const struct nr_worker *w) { return w == NULL ? "no memory" : w->why; }
int nr_rank(const struct nr_worker *w) { return (int)w->assignment.rank; }
int nr_workers(const struct nr_worker *w) { return (int)w->assignment.workers; }
struct nr_statistics nr_statistics(const struct nr_worker *w) { return w->statistics; }

/* Nobody needs this worker's connections any more. Without its agent it does not know, and goes on. */
static bool all_have_left(void *given) {
    struct nr_worker *w = given;
    struct nr_assignment assignment;
    struct nr_ring ring;
    return nr_control_news(w->control, &assignment, &ring, w->why) == NR_JOB_OVER || assignment.epoch != w->epoch;
}

/* The next worker may lack the last sums, which come to it only while this one's device sends. It has them when it
 * acknowledged them; or when all have left, if its acknowledgment was lost and it is gone. */
static void flush(struct nr_worker *w) {
    struct nr_watch watch = {nr_control_wake(w->control), all_have_left, w};
    bool in_a_call = !w->connected || w->worn == w->epoch;
    for (uint32_t i = 0; i < w->assignment.trees && !in_a_call; i++)
        in_a_call = w->links[i].received != w->links[i].sent; /* that ended in an error: its sums may come still */
    if (!in_a_call)
        nr_flush(&w->assignment, &w->device, w->links, &watch, nr_now() + FLUSH_S, w->why);
}

void nr_leave(struct nr_worker *w) {
    if (w == NULL) return;
    if (w->control != NULL) {
        char line[64];
        snprintf(line, sizeof line, "report %llu", (unsigned long long)w->statistics.packets);
        nr_control_say(w->control, line);
        if (nr_control_leave(w->control) == NR_OK) flush(w);
    }
    take_down(w);
    nr_control_close(w->control);
    free(w->last);
    free(w->next);
    free(w);
}
