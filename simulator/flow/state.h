/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A run of the flow level while it is under way: streams, jobs, what is due, queues. state.c lays it out, engine.c has
 * the course of events, jobs.c what a job's events are. */
#ifndef NF_STATE_H
#define NF_STATE_H

#include "engine.h"
#include "heap.h"
#include "shares.h"

struct stream {
    double left, since; /* bytes to the next mark (a flow's end, a channel's end of a bucket), as of then */
    double began, waited; /* flows: when it became active, and what queues were in its way */
    double before, pace;  /* flows: the share until now; the rate that TCP's window is good for, INFINITY before it was
                             marked for the first time */
    int64_t mark, marks;  /* channels: the bucket that is under way, and those that wait, counted on */
};

struct job {
    int64_t iteration, open; /* open: buckets and the compute that the iteration still waits for */
    int64_t *missing;        /* of each bucket: channels that have not carried it */
};

struct run {
    const struct nf_network *n;
    const struct nf_streams *s;
    const struct nf_jobs *j;
    struct nf_shares shares;
    struct nf_heap finish, due; /* active streams; jobs' timers */
    struct stream *streams;
    struct job *jobs;
    int64_t *missing, *job_of, *first_timer, *timer_job;
    double *queue, *queue_area, *queue_since;
    double now;
    int64_t events;
    int broken;
};

enum { JOB_START, JOB_COMPUTED, JOB_TIMERS };
/* A job's timers: these, then of each bucket that it is ready, then of each that it is reduced. */

static inline int64_t nf_buckets_of(const struct run *r, int64_t job) {
    return r->j->buckets[job + 1] - r->j->buckets[job];
}

static inline void nf_set_timer(struct run *r, int64_t job, int64_t which, double time) {
    nf_heap_set(&r->due, (int32_t)(r->first_timer[job] + which), time);
}

/* Bytes of a bucket that a channel carries. */
static inline double nf_part(const struct run *r, int64_t job, int64_t channel, int64_t bucket) {
    return r->j->share[channel] * r->j->bytes[r->j->buckets[job] + bucket];
}

/* 0, or -1 without memory; to be closed in both cases. */
int nf_state_open(struct run *r);
void nf_state_close(struct run *r);

/* engine.c: a stream begins to send. */
void nf_activate(struct run *r, int64_t stream);

/* jobs.c: a timer of a job is due. */
void nf_job_due(struct run *r, int32_t timer);
/* A channel has carried its bucket. Is there another? */
int nf_bucket_carried(struct run *r, int64_t channel);

#endif
