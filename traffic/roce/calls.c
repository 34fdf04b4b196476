/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "../engine/call/call.h"

struct nr_calls {
    pthread_mutex_t lock; /* of all but `outstanding` */
    struct call_log log;
    struct na_report report; /* without the calls */
    atomic_int outstanding; /* sums that the present call lacks */
};

static const enum nf_status statuses[] = {
    [NR_OK] = NF_DONE,         [NR_TIMEOUT] = NF_TIMEOUT,    [NR_JOB_ENDED] = NF_ABORTED, [NR_AGENT] = NF_ABORTED,
    [NR_DEVICE] = NF_ABORTED,  [NR_ASSIGNMENT] = NF_ABORTED, [NR_MISMATCH] = NF_MISMATCH, [NR_OVERFLOW] = NF_SUM_OVERFLOW,
    [NR_NUMBERS] = NF_ABORTED, [NR_MEMORY] = NF_NO_MEMORY,   [NR_LEFT] = NF_WORKERS_LEFT,
};

double nr_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct nr_calls *nr_calls_create(void) {
    struct nr_calls *c = calloc(1, sizeof *c);
    if (c != NULL) pthread_mutex_init(&c->lock, NULL);
    return c;
}

void nr_calls_free(struct nr_calls *c) {
    if (c == NULL) return;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static struct nf_call_record *present(struct nr_calls *c) { return &c->log.records[(c->log.count - 1) % NF_CALL_LOG]; }

void nr_calls_begin(struct nr_calls *c, size_t elements, enum nr_dtype dtype) {
    struct nf_call_record record = {.number = -1, .bytes = 4 * (int64_t)elements, .kind = NF_ALL_REDUCE};
    record.dtype = dtype == NR_INT32 ? NF_INT32 : NF_FLOAT32;
    record.state = CALL_WAITING, record.status = NF_PENDING;
    record.submitted = nr_now();
    pthread_mutex_lock(&c->lock);
    c->log.count++;
    *present(c) = record;
    c->report.totals.has_call = 1;
    c->report.totals.call_kind = record.kind;
    c->report.totals.call_bytes = record.bytes;
    c->report.totals.call_submitted = record.submitted;
    pthread_mutex_unlock(&c->lock);
}

void nr_calls_attempt(struct nr_calls *c, uint64_t number, const struct nr_assignment *assignment, uint64_t messages) {
    atomic_store(&c->outstanding, (int)messages);
    pthread_mutex_lock(&c->lock);
    if (c->report.totals.has_call) { /* a worker may hand a result over without a call of its own */
        struct nf_call_record *record = present(c);
        if (record->started == 0) record->started = nr_now();
        record->number = (int64_t)number;
        record->epoch = (uint16_t)assignment->epoch;
        record->trees = (uint16_t)assignment->trees;
        record->state = CALL_DATA;
    }
    pthread_mutex_unlock(&c->lock);
}

void nr_calls_receive(struct nr_calls *c) { atomic_fetch_sub_explicit(&c->outstanding, 1, memory_order_relaxed); }

void nr_calls_end(struct nr_calls *c, enum nr_error error, uint64_t next, uint64_t packets) {
    pthread_mutex_lock(&c->lock);
    struct nf_call_record *record = present(c);
    record->ended = nr_now();
    record->state = CALL_FINISHED;
    record->status = (uint8_t)statuses[error];
    record->outstanding = error == NR_OK ? 0 : atomic_load(&c->outstanding);
    struct na_report *report = &c->report;
    report->totals.has_call = 0;
    report->totals.next_call = (int64_t)next;
    report->chunks = (int64_t)packets;
    if (error == NR_OK) {
        report->calls++;
        report->elements += record->bytes / 4;
        report->bytes += record->bytes;
        report->seconds += record->ended - record->submitted;
    }
    pthread_mutex_unlock(&c->lock);
}

/* The caller has the lock. */
static int64_t copy_last(struct nr_calls *c, struct nf_call_record *to, int64_t capacity) {
    if (c->report.totals.has_call && present(c)->started > 0) present(c)->outstanding = atomic_load(&c->outstanding);
    int64_t count = c->log.count < NF_CALL_LOG ? c->log.count : NF_CALL_LOG;
    if (count > capacity) count = capacity;
    for (int64_t i = 0; i < count; i++) to[i] = c->log.records[(c->log.count - count + i) % NF_CALL_LOG];
    return count;
}

void nr_calls_report(struct nr_calls *c, struct na_report *report) {
    pthread_mutex_lock(&c->lock);
    *report = c->report;
    report->recent_count = copy_last(c, report->recent, NA_RECENT_CALLS);
    pthread_mutex_unlock(&c->lock);
    report->now = nr_now();
}

int64_t nr_calls_copy(struct nr_calls *c, struct nf_call_record *to, int64_t capacity) {
    pthread_mutex_lock(&c->lock);
    int64_t count = copy_last(c, to, capacity);
    pthread_mutex_unlock(&c->lock);
    return count;
}
