/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The state of one run: streams, jobs, timers, queues. From below: state, queues, streams, jobs, flow.c. */
#ifndef SF_STATE_H
#define SF_STATE_H

#include "flow.h"
#include "heap.h"
#include "max_min.h"

#pragma GCC visibility push(hidden)

struct sf_stream {
    double left, since;       /* bytes to the next completion (of the flow, or of the channel's bucket) at time `since` */
    double began, queue_wait; /* flows: when it became active; seconds in the queues of its links at that time */
    double prev_rate, pace;   /* flows: the rate until now; what TCP's window allows, INFINITY before the first mark */
    int64_t bucket, waiting;  /* channels: the bucket in transmission; buckets that are ready, that one included */
};

struct sf_job {
    int64_t iteration, open; /* open: buckets and the compute that the iteration waits for */
    int64_t *missing;        /* of each bucket: channels that have not carried it */
};

struct sf_run {
    const struct sf_network *n;
    const struct sf_streams *s;
    const struct sf_jobs *j;
    struct sf_max_min rates;
    struct sf_heap completions, timers; /* of active streams; of jobs */
    struct sf_stream *streams;
    struct sf_job *jobs;
    int64_t *missing, *job_of, *first_timer, *timer_job;
    double *queue, *queue_area, *queue_since;
    double now;
    int64_t events;
    int out_of_memory;
};

/* A job has these two timers, then one per bucket (ready), then one per bucket (reduced). */
enum { SF_JOB_START, SF_JOB_COMPUTED, SF_JOB_BUCKETS };

static inline int64_t sf_bucket_count(const struct sf_run *r, int64_t job) {
    return r->j->buckets[job + 1] - r->j->buckets[job];
}

static inline void sf_set_timer(struct sf_run *r, int64_t job, int64_t timer, double time) {
    sf_heap_set(&r->timers, (int32_t)(r->first_timer[job] + timer), time);
}

/* Returns the bytes of a bucket that a channel carries. */
static inline double sf_channel_bytes(const struct sf_run *r, int64_t job, int64_t channel, int64_t bucket) {
    return r->j->share[channel] * r->j->bytes[r->j->buckets[job] + bucket];
}

/* Returns 0, or -1 if memory is exhausted. Close it in both cases. */
int sf_state_open(struct sf_run *r);
void sf_state_close(struct sf_run *r);

#pragma GCC visibility pop

#endif
