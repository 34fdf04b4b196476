/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "member.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/dump.h"
#include "agent_process.h"
#include "progress.h"

#define START_SECONDS 60.0     /* of an agent: Python and gRPC on a busy machine */
#define JOB_SECONDS 300.0      /* in the queue, and until all workers have joined */
#define NEW_EPOCH_SECONDS 60.0
#define HEARTBEAT_SECONDS 0.3
#define FAIL_SECONDS 5.0       /* until the job is canceled */
#define LEAVE_SECONDS 30.0     /* until the controller knows: it may be busy, and so may the agent */
#define LONG_SLICE 0.004

enum { LONG_BYTES = 32768 };

struct nm_member {
    struct nm_agent *agent;
    struct na_channel *channel; /* the agent's */
    struct nf_engine *engine;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    int64_t epoch; /* 0: none yet */
    int64_t scheme, bits, float_dtypes, targets;
    int has_ended, is_closing;
    char reason[NM_REASON_BYTES]; /* of the end */
    struct na_report report;
};

static void copy_text(char *to, size_t capacity, const char *from) { snprintf(to, capacity, "%s", from); }

/* Waits for a message of this type; texts of NA_ENDED go to `reason`. 0 or -1. */
static int await_text(struct nm_member *m, uint32_t type, double seconds, char *text, size_t capacity, char *reason) {
    double until = nm_now() + seconds;
    struct na_message message;
    for (double left = seconds; left > 0; left = until - nm_now()) {
        int found = na_receive(m->channel, &message, left);
        if (found < 0) break;
        if (found && message.type == type) {
            copy_text(text, capacity, message.text);
            return 0;
        }
        if (found && message.type == NA_ENDED) {
            copy_text(reason, NM_REASON_BYTES, message.text);
            return -1;
        }
    }
    snprintf(reason, NM_REASON_BYTES, "the agent (%s) ended, or did not answer within %.0f s", "netfold.traffic.mpi.agent",
             seconds);
    return -1;
}

struct nm_member *nm_member_open(char host[NM_NAME_BYTES], char reason[NM_REASON_BYTES]) {
    struct nm_member *m = calloc(1, sizeof *m);
    if (m) m->engine = nf_engine_create();
    if (m && m->engine) m->agent = nm_agent_start();
    if (!m || !m->engine || !m->agent) {
        snprintf(reason, NM_REASON_BYTES, "the agent cannot be started: %s", strerror(errno));
        if (m && m->engine) nf_engine_destroy(m->engine);
        free(m);
        return NULL;
    }
    m->channel = nm_agent_channel(m->agent);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    if (await_text(m, NA_HOST, START_SECONDS, host, NM_NAME_BYTES, reason) == 0) return m;
    nm_member_close(m);
    return NULL;
}

int nm_member_submit(struct nm_member *m, const char *hosts, char job[NM_NAME_BYTES], char reason[NM_REASON_BYTES]) {
    na_send_text(m->channel, NA_SUBMIT, hosts);
    return await_text(m, NA_JOB, JOB_SECONDS, job, NM_NAME_BYTES, reason);
}

/* ---- the agent's messages, in a thread ---- */

static void end_with(struct nm_member *m, const char *reason) {
    pthread_mutex_lock(&m->lock);
    if (!m->has_ended) copy_text(m->reason, sizeof m->reason, reason);
    m->has_ended = 1;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    nf_engine_abort(m->engine);
}

static void enter_epoch(struct nm_member *m, const struct na_message *message) {
    const struct na_assign *assign = message->body;
    int error = message->size == sizeof *assign
                    ? nf_engine_assign(m->engine, &assign->assignment, message->sockets, (int64_t)message->socket_count)
                    : EPROTO;
    if (error) {
        char reason[NM_REASON_BYTES];
        snprintf(reason, sizeof reason, "the job epoch cannot be entered: %s", strerror(error));
        end_with(m, reason);
        na_send_text(m->channel, NA_ENDED, reason); /* the other ranks need not wait for this one */
        return;
    }
    pthread_mutex_lock(&m->lock);
    m->epoch = assign->assignment.epoch;
    m->scheme = assign->scheme;
    m->bits = assign->bits;
    m->float_dtypes = assign->float_dtypes;
    m->targets = assign->assignment.targets;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void take_message(struct nm_member *m, const struct na_message *message) {
    const struct na_departures *left = message->body;
    switch (message->type) {
    case NA_PREPARE:
        nf_engine_close_sockets(m->engine);
        na_send(m->channel, NA_READY, NULL, 0);
        break;
    case NA_ASSIGN:
        enter_epoch(m, message);
        break;
    case NA_DEPARTURES:
        if (message->size == sizeof *left) nf_engine_set_departures(m->engine, left->epoch, &left->departures);
        break;
    case NA_ENDED:
        end_with(m, message->text);
        break;
    default:
        end_with(m, "the agent sent a message of an unknown type: agent and library are of different versions");
    }
}

/* The newest counters. */
static struct na_report build_report(struct nm_member *m) {
    pthread_mutex_lock(&m->lock);
    struct na_report report = m->report;
    pthread_mutex_unlock(&m->lock);
    report.now = nm_now();
    report.socket_errors = nf_engine_socket_errors(m->engine);
    nf_engine_totals(m->engine, &report.totals);
    report.tree_count = nf_engine_reports(m->engine, report.trees, NF_TREES_MAX);
    report.recent_count = nf_engine_call_log(m->engine, report.recent, NA_RECENT_CALLS);
    for (int64_t i = 0; i < report.tree_count; i++) report.chunks += report.trees[i].results;
    return report;
}

static int64_t copy_calls(void *member, struct nf_call_record *to, int64_t capacity) {
    return nf_engine_call_log(((struct nm_member *)member)->engine, to, capacity);
}

static void *serve_agent(void *member) {
    struct nm_member *m = member;
    double heartbeat_at = 0;
    int dumps = 0;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        int is_closing = m->is_closing;
        pthread_mutex_unlock(&m->lock);
        if (is_closing) return NULL;
        double now = nm_now();
        if (now >= heartbeat_at) {
            struct na_report report = build_report(m);
            na_send(m->channel, NA_REPORT, &report, sizeof report);
            heartbeat_at = now + HEARTBEAT_SECONDS;
        }
        if (dumps != na_dump_requests()) {
            dumps = na_dump_requests();
            na_send_calls(m->channel, copy_calls, m);
        }
        struct na_message message;
        int found = na_receive(m->channel, &message, heartbeat_at - now);
        if (found > 0) take_message(m, &message);
        if (found < 0) {
            end_with(m, "the agent of this host is gone");
            return NULL;
        }
    }
}

/* ---- calls ---- */

/* Until an epoch other than `epoch`, or the job's end. Whether there is one. */
static int await_epoch(struct nm_member *m, int64_t epoch, double seconds) {
    double until = nm_now() + seconds;
    pthread_mutex_lock(&m->lock);
    while (m->epoch == epoch && !m->has_ended && nm_now() < until) {
        struct timespec slice;
        clock_gettime(CLOCK_REALTIME, &slice);
        slice.tv_nsec += (long)(1e9 * NM_SLICE);
        slice.tv_sec += slice.tv_nsec / 1000000000;
        slice.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&m->changed, &m->lock, &slice);
        pthread_mutex_unlock(&m->lock);
        nm_progress();
        pthread_mutex_lock(&m->lock);
    }
    int found = m->epoch != epoch && !m->has_ended;
    pthread_mutex_unlock(&m->lock);
    return found;
}

static int request_epoch(struct nm_member *m, int64_t epoch) {
    struct na_new_epoch message = {epoch};
    na_send(m->channel, NA_NEW_EPOCH, &message, sizeof message);
    return await_epoch(m, epoch, NEW_EPOCH_SECONDS);
}

int nm_member_join(struct nm_member *m, const char *job, char reason[NM_REASON_BYTES]) {
    na_send_text(m->channel, NA_JOIN, job);
    na_take_dump_signal();
    m->has_thread = pthread_create(&m->thread, NULL, serve_agent, m) == 0;
    if (m->has_thread && await_epoch(m, 0, JOB_SECONDS)) return 0;
    pthread_mutex_lock(&m->lock);
    copy_text(reason, NM_REASON_BYTES, m->has_ended ? m->reason : "the job has not started");
    pthread_mutex_unlock(&m->lock);
    return -1;
}

int nm_member_float_dtypes(struct nm_member *m) {
    pthread_mutex_lock(&m->lock);
    int float_dtypes = (int)m->float_dtypes;
    pthread_mutex_unlock(&m->lock);
    return float_dtypes;
}

int nm_member_has_targets(struct nm_member *m) {
    pthread_mutex_lock(&m->lock);
    int has_targets = m->targets != NF_NO_TARGETS;
    pthread_mutex_unlock(&m->lock);
    return has_targets;
}

static struct nf_outcome ended_outcome(struct nm_member *m) {
    struct nf_outcome outcome = {.status = NF_ABORTED};
    pthread_mutex_lock(&m->lock);
    copy_text(outcome.message, sizeof outcome.message,
              m->has_ended ? m->reason : "no new job epoch started after a failed call");
    pthread_mutex_unlock(&m->lock);
    return outcome;
}

static int has_ended(struct nm_member *m) {
    pthread_mutex_lock(&m->lock);
    int ended = m->has_ended;
    pthread_mutex_unlock(&m->lock);
    return ended;
}

/* Waits for the call, at most a slice. Whether it is finished. */
static int await_slice(struct nm_member *m, struct nf_call *call, int is_long) {
    if (is_long) return nf_engine_next_completed(m->engine, nm_now() + LONG_SLICE) != NULL;
    return nf_engine_wait(m->engine, call, nm_now() + NM_SLICE) != NF_PENDING;
}

/* Waits for the call. A new epoch replaces one in which it cannot continue. */
static void await_call(struct nm_member *m, struct nf_call *call, int is_long) {
    while (!await_slice(m, call, is_long)) {
        struct nf_totals totals;
        nf_engine_totals(m->engine, &totals);
        if (totals.unusable_epoch && !request_epoch(m, totals.unusable_epoch)) nf_engine_fail_epoch_waiters(m->engine);
        nm_progress();
    }
}

static void explain(struct nf_outcome *outcome) {
    const char *text = NULL;
    if (outcome->status == NF_MISMATCH)
        text = "the ranks made different calls: communicators, operations, datatypes, counts or roots differ";
    if (outcome->status == NF_WORKERS_LEFT) text = "a rank that the call needs has ended";
    if (outcome->status == NF_EXHAUSTED) text = "the call needs more chunks than a job epoch has numbers";
    if (outcome->status == NF_NO_MEMORY) text = "no memory";
    if (outcome->status == NF_FLOATS_UNSUPPORTED) text = "not all nodes of the job's trees add floats";
    if (text) copy_text(outcome->message, sizeof outcome->message, text);
    if (!outcome->message[0])
        snprintf(outcome->message, sizeof outcome->message, "the call failed (status %ld)", (long)outcome->status);
}

struct nf_outcome nm_member_reduce(struct nm_member *m, void *array, size_t elements, enum nf_dtype dtype, int64_t context,
                                   enum nf_kind kind, struct nm_blocks blocks) {
    double started = nm_now();
    struct nf_totals totals;
    nf_engine_totals(m->engine, &totals);
    pthread_mutex_lock(&m->lock);
    int64_t epoch = m->epoch;
    struct nf_request request = {.array = array,
                                 .elements = (int64_t)elements,
                                 .dtype = dtype,
                                 .op = NF_SUM,
                                 .scheme = m->scheme,
                                 .bits = m->bits,
                                 .form = blocks.form,
                                 .block_count = blocks.count,
                                 .blocks = blocks.blocks,
                                 .context = context,
                                 .kind = kind,
                                 .deadline = NF_UNKNOWN,
                                 .submitted = started};
    pthread_mutex_unlock(&m->lock);
    if (has_ended(m) || (totals.has_failed_call && !request_epoch(m, epoch))) return ended_outcome(m);
    /* The engine's thread moves the packets of a long call: this one is away while it lets MPI make progress. */
    int is_long = (int64_t)elements * nf_itemsize(dtype) > LONG_BYTES;
    struct nf_call *call = nf_engine_submit(m->engine, &request, is_long);
    struct nf_outcome outcome = {.status = NF_NO_MEMORY};
    if (call) {
        if (has_ended(m)) nf_engine_abort(m->engine); /* of earlier calls: this one came after that */
        await_call(m, call, is_long);
        nf_engine_release(m->engine, call, &outcome);
    }
    if (outcome.status == NF_DONE) {
        pthread_mutex_lock(&m->lock);
        m->report.calls++;
        m->report.elements += (int64_t)elements;
        m->report.bytes += (int64_t)elements * nf_itemsize(dtype);
        m->report.seconds += nm_now() - started;
        pthread_mutex_unlock(&m->lock);
    } else {
        if (outcome.status != NF_SUM_OVERFLOW && na_wants_dumps()) na_request_dump();
        if (has_ended(m)) return ended_outcome(m);
        explain(&outcome);
    }
    return outcome;
}

void nm_member_fail(struct nm_member *m, const char *reason) {
    na_send_text(m->channel, NA_ENDED, reason);
    await_epoch(m, m->epoch, FAIL_SECONDS);
}

void nm_member_close(struct nm_member *m) {
    pthread_mutex_lock(&m->lock);
    m->is_closing = 1;
    pthread_mutex_unlock(&m->lock);
    if (m->has_thread) {
        pthread_join(m->thread, NULL);
        struct na_report report = build_report(m);
        na_send(m->channel, NA_LEAVE, &report, sizeof report);
    }
    nf_engine_stop(m->engine);
    nm_agent_end(m->agent, LEAVE_SECONDS);
    nf_engine_destroy(m->engine);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    free(m);
}
