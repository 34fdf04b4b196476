/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "calls.h"
#include "gradient.h"
#include "message_header.h"

enum {
    EPOCH_PACKETS = 1 << 23, /* half of the PSNs: receivers take the other half for duplicates */
    FLUSH_S = 30,
};

/* epoch            of the connections
 * unusable_epoch   the last one that this worker requested a new epoch for
 * mismatch_epoch   the last one whose queue pairs reported a mismatch
 * lost             the last call ended with a mismatch
 * contributors     workers of the last call that this worker has sent for: a handover's epoch may have fewer
 * last, next       results of the last call, retained for workers that lack them in a new epoch; of the call in flight */
struct nr_worker {
    struct nr_options options;
    struct nr_control *control;
    struct nr_calls *log;
    struct nr_assignment assignment;
    struct nr_device device;
    struct nr_connection connections[NR_TREES];
    uint32_t epoch, unusable_epoch, mismatch_epoch, contributors;
    bool connected, lost;
    uint64_t calls, packets;
    void *last, *next;
    size_t last_elements, last_capacity, next_capacity;
    struct nr_ranges ranges; /* of gradients in this epoch */
    struct nr_statistics statistics;
    char reason[NR_REASON_BYTES];
};

static void close_connections(struct nr_worker *w) {
    for (uint32_t i = 0; i < NR_TREES; i++) nr_connection_close(&w->connections[i]);
    nr_device_close(&w->device);
    w->connected = false;
    w->packets = 0;
}

/* ---- epochs ---- */

static enum nr_error request_new_epoch(struct nr_worker *w) {
    if (w->unusable_epoch == w->epoch) return NR_OK;
    w->unusable_epoch = w->epoch;
    struct na_new_epoch message = {w->unusable_epoch};
    return nr_control_send(w->control, NA_NEW_EPOCH, &message, sizeof message);
}

/* Creates the connections of a new epoch, and sends their queue pairs to the agent. */
static enum nr_error create_connections(struct nr_worker *w, const struct nr_assignment *a) {
    close_connections(w);
    nr_forget_ranges(&w->ranges);
    w->assignment = *a;
    w->epoch = a->epoch;
    if (!a->integer && !a->floats && nr_header_blocks(a->lanes, a->workers) == 0) {
        snprintf(w->reason, sizeof w->reason, "%u lanes have no room for the exponents of %u workers", a->lanes, a->workers);
        return NR_ASSIGNMENT;
    }
    enum nr_error failed = nr_device_open(&w->device, &w->options, a->address, a->lanes, w->reason);
    struct na_queue_pairs own = {.epoch = a->epoch, .tree_count = a->trees};
    own.calls = w->mismatch_epoch == a->epoch ? NA_CALLS_MISMATCH : w->calls;
    for (uint32_t i = 0; i < a->trees && failed == NR_OK; i++) {
        struct nr_connection *connection = &w->connections[i];
        failed = nr_connection_create(connection, &w->device, a->lanes, a->tree[i].window, w->options.first_psn, w->reason);
        if (failed == NR_OK)
            own.trees[i] = (struct na_queue_pair){a->tree[i].tree, connection->send_qp->qp_num, connection->recv_qp->qp_num,
                                                  connection->first_psn};
    }
    return failed == NR_OK ? nr_control_send(w->control, NA_QUEUE_PAIRS, &own, sizeof own) : failed;
}

static enum nr_error establish_connections(struct nr_worker *w, const struct na_ring *ring) {
    for (int64_t i = 0; i < ring->tree_count; i++) {
        if (ring->tree_count != w->assignment.trees || ring->trees[i].tree != w->assignment.tree[i].tree) {
            snprintf(w->reason, sizeof w->reason, "the ring of job epoch %u has other trees than its assignment", w->epoch);
            return NR_ASSIGNMENT;
        }
        enum nr_error failed = nr_connection_establish(&w->connections[i], &w->device, &ring->trees[i], w->reason);
        if (failed != NR_OK) return failed;
    }
    w->connected = true;
    w->statistics.epochs++;
    return NR_OK;
}

static enum nr_error wait_for_update(struct nr_worker *w, double until, const char *what) {
    double left = until - nr_now();
    struct pollfd watched = {nr_control_descriptor(w->control), POLLIN, 0};
    if (left <= 0 || poll(&watched, 1, left > 1000 ? 1000000 : (int)ceil(1000 * left)) == 0) {
        snprintf(w->reason, sizeof w->reason, "%s", what);
        return NR_TIMEOUT;
    }
    return NR_OK;
}

static bool ensure_capacity(void **buffer, size_t *capacity, size_t elements) {
    size_t wanted = 4 * (elements > 0 ? elements : 1);
    if (*capacity >= wanted) return true;
    void *larger = realloc(*buffer, wanted);
    if (larger == NULL) return false;
    *buffer = larger;
    *capacity = wanted;
    return true;
}

/* The call in `next` becomes the last one. */
static void complete(struct nr_worker *w, size_t elements) {
    void *buffer = w->last;
    size_t capacity = w->last_capacity;
    w->last = w->next, w->last_capacity = w->next_capacity, w->last_elements = elements;
    w->next = buffer, w->next_capacity = capacity;
    w->lost = false;
    w->calls++;
}

/* The connections' epoch is the newest one: `*a` is its assignment, with the workers that have left. */
static bool is_current(struct nr_worker *w, struct nr_assignment *a) {
    struct na_ring ring;
    return nr_control_poll(w->control, a, &ring, w->reason) == NR_OK && a->epoch == w->epoch;
}

/* ---- workers that left (docs/reference/protocol.md, 5.7) ---- */

static bool is_beyond_limit(const struct nr_assignment *a, uint64_t call) {
    return a->left.hosts[0] != '\0' && call >= a->left.call_limit;
}

/* Some of the epoch's workers take part neither in its ring nor in a handover. */
static bool lacks_workers(const struct nr_assignment *a) { return a->left.hosts[0] != '\0' && a->left.are_present; }

static bool call_is_over(void *context) {
    struct nr_worker *w = context;
    struct nr_assignment assignment;
    return !is_current(w, &assignment) || is_beyond_limit(&assignment, w->calls);
}

static bool handover_is_over(void *context) {
    struct nr_worker *w = context;
    struct nr_assignment assignment;
    return !is_current(w, &assignment) || lacks_workers(&assignment);
}

static enum nr_error left_error(struct nr_worker *w, const struct nr_departures *left) {
    w->assignment.left = *left;
    snprintf(w->reason, sizeof w->reason, "%s left the job after %llu calls%s", left->hosts, (unsigned long long)left->calls,
             left->is_final ? "" : ", and no job epoch without them started before the deadline");
    return NR_LEFT;
}

static enum nr_outcome run(struct nr_worker *w, struct nr_call *call, double until) {
    uint64_t packets = nr_call_packets(call, &w->assignment, w->connections);
    w->packets += packets;
    w->statistics.packets += packets;
    call->log = w->log;
    struct nr_watch watch = {nr_control_descriptor(w->control),
                             call->type == NR_CALL_HANDOVER ? handover_is_over : call_is_over, w};
    return nr_call_run(call, &w->assignment, &w->device, w->connections, &watch, until, w->reason);
}

/* A gradient's rows that do not fit their ranges are the same at all workers, and sent again in a second call. */
static enum nr_outcome run_with_repeat(struct nr_worker *w, struct nr_call *call, double until) {
    enum nr_outcome outcome = run(w, call, until);
    struct nr_call repeat;
    if (call->type != NR_CALL_QUARTER || outcome != NR_DONE) return outcome;
    if (!nr_begin_repeat(&repeat, call, &w->assignment)) {
        snprintf(w->reason, sizeof w->reason, "no memory for the rows of a gradient that are sent again");
        return NR_CONNECTION_LOST;
    }
    if (repeat.elements > 0) outcome = run(w, &repeat, until);
    nr_end_repeat(&repeat, call, &w->assignment, outcome == NR_DONE);
    return outcome;
}

/* The call ended with a mismatch, as it does at all workers. A worker that has not detected it stays in a call that the other
 * workers have counted without a result, and detects it then. */
static void lose_call(struct nr_worker *w) {
    w->lost = true;
    w->calls++;
    w->last_elements = 0;
}

/* Some workers completed the last call before the epoch ended: rank `source_rank` hands its result over to the rest. `wanted`: the
 * call of this worker, NULL if it has none. If the result was lost in a mismatch, these workers get a mismatch, too; a new epoch
 * then synchronizes the call numbers. */
static enum nr_outcome hand_over_result(struct nr_worker *w, const struct na_ring *ring, struct nr_call *wanted, double until) {
    bool ahead = w->calls == ring->max_calls;
    if (ring->max_calls - ring->min_calls > 1 || (!ahead && wanted == NULL)) {
        snprintf(w->reason, sizeof w->reason,
                 "this worker has completed %llu calls, another one %llu: at most one call can be handed over",
                 (unsigned long long)w->calls, (unsigned long long)ring->max_calls);
        return NR_CALL_DESYNC;
    }
    size_t elements = ahead ? w->last_elements : wanted->elements;
    struct nr_call again = {.type = NR_CALL_HANDOVER, .number = ring->min_calls, .elements = elements};
    if (!ensure_capacity(&w->next, &w->next_capacity, elements)) return NR_CONNECTION_LOST;
    if (w->assignment.rank == ring->source_rank) again.from = w->last;
    again.to = w->next;
    enum nr_outcome outcome = run(w, &again, until);
    if (outcome == NR_DONE && !ahead) complete(w, elements);
    if (outcome == NR_CALL_DESYNC && !ahead) lose_call(w);
    return outcome == NR_CALL_DESYNC && ahead && w->lost ? NR_CONNECTION_LOST : outcome;
}

/* Notifies the other workers by the queue pairs of the next epoch; if that epoch does not start before the deadline, they detect the
 * mismatch in their next call. Keeps the error message of the mismatch. */
static enum nr_error mismatch(struct nr_worker *w, double until) {
    char reason[NR_REASON_BYTES];
    memcpy(reason, w->reason, sizeof reason);
    struct nr_assignment assignment;
    struct na_ring ring;
    enum nr_error failed = request_new_epoch(w);
    while (failed == NR_OK && (failed = nr_control_poll(w->control, &assignment, &ring, w->reason)) == NR_OK &&
           assignment.epoch == w->epoch)
        failed = wait_for_update(w, until, "");
    if (failed == NR_OK) {
        w->mismatch_epoch = assignment.epoch;
        create_connections(w, &assignment);
    }
    memcpy(w->reason, reason, sizeof reason);
    lose_call(w);
    return NR_MISMATCH;
}

/* Whether another worker detected a mismatch in this worker's call when the previous epoch ended. */
static bool peer_mismatched(struct nr_worker *w, const struct na_ring *ring) {
    if (ring->max_calls != NA_CALLS_MISMATCH || w->mismatch_epoch == ring->epoch) return false;
    snprintf(w->reason, sizeof w->reason,
             "another worker saw that workers called with different arrays, or one skipped a call");
    return true;
}

/* Connects in the newest epoch. `*has_result`: another worker handed over the result of `wanted`, this worker's call. */
static enum nr_error ensure_connected(struct nr_worker *w, struct nr_call *wanted, bool *has_result, double until) {
    for (;;) {
        struct nr_assignment assignment;
        struct na_ring ring;
        enum nr_error failed = nr_control_poll(w->control, &assignment, &ring, w->reason);
        if (failed != NR_OK) return failed;
        bool newest = w->epoch != 0 && assignment.epoch == w->epoch && w->unusable_epoch != w->epoch;
        if (newest && w->connected) return NR_OK;
        if (assignment.epoch != 0 && assignment.epoch != w->epoch) {
            failed = create_connections(w, &assignment);
        } else if (newest && lacks_workers(&assignment)) {
            failed = request_new_epoch(w);
        } else if (newest && ring.epoch == w->epoch) {
            failed = establish_connections(w, &ring);
            if (failed == NR_OK && wanted != NULL && peer_mismatched(w, &ring)) {
                lose_call(w);
                return NR_MISMATCH;
            }
            if (failed == NR_OK && ring.min_calls != ring.max_calls && ring.max_calls != NA_CALLS_MISMATCH) {
                uint64_t before = w->calls;
                enum nr_outcome outcome = hand_over_result(w, &ring, wanted, until);
                if (outcome == NR_CALL_DESYNC) return NR_MISMATCH;
                if (outcome == NR_DEADLINE) return NR_TIMEOUT;
                bool lacks = outcome == NR_EPOCH_CHANGED && is_current(w, &assignment) && lacks_workers(&assignment);
                if (outcome == NR_CONNECTION_LOST || lacks) failed = request_new_epoch(w);
                *has_result = w->calls != before;
                if (*has_result) return NR_OK;
            }
        } else {
            const char *what = w->epoch == 0 ? "no assignment was received: the job is queued, or the agent has not joined it"
                                             : "no ring was received: another worker has not registered its queue pairs";
            failed = wait_for_update(w, until, what);
            bool have_left = lacks_workers(&assignment) || is_beyond_limit(&assignment, w->calls);
            if (failed == NR_TIMEOUT && have_left) failed = left_error(w, &assignment.left);
        }
        if (failed != NR_OK) return failed;
    }
}

/* ---- public functions ---- */

enum nr_error nr_join(struct nr_worker **worker, const struct nr_options *options, double seconds) {
    struct nr_worker *w = *worker = calloc(1, sizeof *w);
    if (w == NULL) return NR_MEMORY;
    w->options = *options;
    if ((w->log = nr_calls_create()) == NULL) return NR_MEMORY;
    enum nr_error failed = nr_control_open(&w->control, options->agent, w->log, w->reason);
    bool has_result = false;
    if (failed == NR_OK) failed = ensure_connected(w, NULL, &has_result, nr_now() + seconds);
    w->contributors = w->assignment.workers;
    return failed;
}

static enum nr_error check(struct nr_worker *w, enum nr_dtype dtype, enum nr_op op) {
    if ((dtype == NR_INT32) == w->assignment.integer && (op == NR_SUM || dtype == NR_FLOAT32)) return NR_OK;
    const char *numerics = w->assignment.integer   ? "integer"
                           : w->assignment.floats  ? "float32"
                           : w->assignment.quarter ? "quarter"
                                                   : "block";
    snprintf(w->reason, sizeof w->reason, "numerics of the job is %s: it adds %s arrays", numerics,
             w->assignment.integer ? "int32" : "float32");
    return NR_NUMBERS;
}

/* An invalid result (NaN or infinity in the arrays) is retained as words that no sum has, so that a worker that receives it by
 * handover fails, too. Saturated integer sums show it by themselves. */
enum { POISON = 0xff };

static void poison_result(struct nr_worker *w, const struct nr_call *call) {
    if (call->not_finite) memset(w->next, POISON, 4 * call->elements);
}

static void detect_poisoned_result(const struct nr_worker *w, struct nr_call *call) {
    const int32_t *words = w->last;
    for (size_t i = 0; i < call->elements; i++) {
        if ((call->type == NR_CALL_BLOCK_FLOAT || call->type == NR_CALL_QUARTER) && words[i] == -1) call->not_finite = true;
        if (call->type == NR_CALL_INTEGER && (words[i] == INT32_MAX || words[i] == INT32_MIN)) call->overflow = true;
    }
}

static enum nr_error finished(struct nr_worker *w, const struct nr_call *call, void *array) {
    if (call->overflow || call->not_finite) {
        snprintf(w->reason, sizeof w->reason,
                 call->overflow ? "a sum of int32 is saturated"
                                : "the arrays contain NaN or infinity, which only numerics float32 supports");
        return call->overflow ? NR_OVERFLOW : NR_NUMBERS;
    }
    memcpy(array, w->last, 4 * call->elements);
    w->statistics.calls++;
    return NR_OK;
}

static enum nr_error run_call(struct nr_worker *w, void *array, size_t elements, enum nr_dtype dtype, enum nr_op op,
                              bool is_gradient, double seconds) {
    double until = nr_now() + seconds;
    uint64_t most = w->options.epoch_packets;
    if (most == 0 || most > EPOCH_PACKETS) most = EPOCH_PACKETS;
    for (;;) {
        enum nr_error failed = check(w, dtype, op);
        if (failed != NR_OK) return failed;
        enum nr_call_type type = dtype == NR_INT32      ? NR_CALL_INTEGER
                                 : w->assignment.floats ? NR_CALL_FLOAT32
                                                        : NR_CALL_BLOCK_FLOAT;
        struct nr_call call = {.type = type, .op = op, .number = w->calls, .elements = elements, .from = array};
        bool has_result = false;
        failed = ensure_connected(w, &call, &has_result, until);
        if (failed != NR_OK) return failed;
        if (has_result) {
            detect_poisoned_result(w, &call);
            return finished(w, &call, array);
        }
        struct nr_assignment now;
        if (!is_current(w, &now)) continue;
        if (is_beyond_limit(&now, w->calls)) { /* the others may lack the last sum, which they get in an epoch of the rest */
            if (now.left.is_final && !lacks_workers(&now)) return left_error(w, &now.left);
            if ((failed = request_new_epoch(w)) != NR_OK) return failed;
            continue;
        }
        if (is_gradient && !nr_choose_quarter(&w->ranges, &call, &w->assignment, w->connections, most)) return NR_MEMORY;
        uint64_t packets = nr_max_packets(&call, &w->assignment, w->connections);
        if (packets > most) {
            snprintf(w->reason, sizeof w->reason, "%zu elements need more packets than a job epoch has numbers", elements);
            return NR_ASSIGNMENT;
        }
        if (w->packets + packets > most) { /* all workers have sent as many, so all request it */
            nr_free_rows(&call);
            if ((failed = request_new_epoch(w)) != NR_OK) return failed;
            continue;
        }
        if (!ensure_capacity(&w->next, &w->next_capacity, elements)) {
            nr_free_rows(&call);
            return NR_MEMORY;
        }
        call.to = w->next;
        w->contributors = w->assignment.workers;
        enum nr_outcome outcome = run_with_repeat(w, &call, until);
        if (outcome == NR_DONE && is_gradient && w->assignment.quarter) nr_learn_ranges(&w->ranges, &call, &w->assignment);
        nr_free_rows(&call);
        switch (outcome) {
        case NR_DONE:
            poison_result(w, &call);
            complete(w, elements);
            return finished(w, &call, array);
        case NR_EPOCH_CHANGED: /* the call restarts in the new epoch, or workers have left */
            break;
        case NR_DEADLINE:
            request_new_epoch(w);
            return NR_TIMEOUT;
        case NR_CALL_DESYNC:
            return mismatch(w, until);
        case NR_CONNECTION_LOST:
            if ((failed = request_new_epoch(w)) != NR_OK) return failed;
            break;
        }
    }
}

static enum nr_error all_reduce(struct nr_worker *w, void *array, size_t elements, enum nr_dtype dtype, enum nr_op op,
                                bool is_gradient, double seconds) {
    if (w->control == NULL) return NR_AGENT;
    nr_calls_begin(w->log, elements, dtype);
    enum nr_error failed = run_call(w, array, elements, dtype, op, is_gradient, seconds);
    nr_calls_end(w->log, failed, w->calls, w->statistics.packets);
    if (failed != NR_OK && failed != NR_OVERFLOW) nr_control_dump(w->control);
    return failed;
}

enum nr_error nr_all_reduce(struct nr_worker *w, void *array, size_t elements, enum nr_dtype dtype, enum nr_op op,
                            double seconds) {
    return all_reduce(w, array, elements, dtype, op, false, seconds);
}

enum nr_error nr_all_reduce_gradient(struct nr_worker *w, float *array, size_t elements, enum nr_op op, double seconds) {
    return all_reduce(w, array, elements, NR_FLOAT32, op, true, seconds);
}

const char *nr_error_message(const struct nr_worker *w) { return w == NULL ? "no memory" : w->reason; }
const char *nr_left_hosts(const struct nr_worker *w) { return w->assignment.left.hosts; }
int nr_rank(const struct nr_worker *w) { return (int)w->assignment.rank; }
int nr_workers(const struct nr_worker *w) { return (int)w->contributors; }
struct nr_statistics nr_statistics(const struct nr_worker *w) { return w->statistics; }

/* No worker needs this one's connections any more. False without an agent. */
static bool all_have_left(void *context) {
    struct nr_worker *w = context;
    struct nr_assignment assignment;
    struct na_ring ring;
    return nr_control_poll(w->control, &assignment, &ring, w->reason) == NR_JOB_ENDED || assignment.epoch != w->epoch;
}

/* The successor may lack the last sums, which it gets only while this worker's device sends. It has them when it has acknowledged
 * them, or when all workers have left (its acknowledgment may be lost). */
static void flush(struct nr_worker *w) {
    struct nr_watch watch = {nr_control_descriptor(w->control), all_have_left, w};
    bool in_a_call = !w->connected || w->unusable_epoch == w->epoch;
    for (uint32_t i = 0; i < w->assignment.trees && !in_a_call; i++)
        in_a_call = w->connections[i].received != w->connections[i].sent; /* a failed one, whose sums may still arrive */
    if (!in_a_call) nr_flush(&w->assignment, &w->device, w->connections, &watch, nr_now() + FLUSH_S, w->reason);
}

void nr_leave(struct nr_worker *w) {
    if (w == NULL) return;
    if (w->control != NULL) {
        if (nr_control_leave(w->control) == NR_OK) flush(w);
    }
    close_connections(w);
    nr_control_close(w->control);
    nr_calls_free(w->log);
    nr_forget_ranges(&w->ranges);
    free(w->last);
    free(w->next);
    free(w);
}
