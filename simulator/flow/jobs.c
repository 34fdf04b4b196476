/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A job's iterations and their buckets: when they are ready, carried by all channels, reduced. */
#include "state.h"

static void begin_iteration(struct run *r, int64_t job) {
    int64_t buckets = nf_buckets_of(r, job), first = r->j->buckets[job];
    r->j->began[r->j->first_iteration[job] + r->jobs[job].iteration] = r->now;
    r->jobs[job].open = buckets + 1;
    for (int64_t b = 0; b < buckets; b++)
        nf_set_timer(r, job, JOB_TIMERS + b, r->now + r->j->ready[first + b]);
    nf_set_timer(r, job, JOB_COMPUTED, r->now + r->j->compute[job]);
}

static void one_less(struct run *r, int64_t job) {
    struct job *own = &r->jobs[job];
    if (--own->open)
        return;
    r->j->ended[r->j->first_iteration[job] + own->iteration] = r->now;
    if (++own->iteration < r->j->iterations[job])
        begin_iteration(r, job);
}

static int64_t place_of(const struct run *r, int64_t job, int64_t bucket) {
    return r->j->first_reduced[job] + r->jobs[job].iteration * nf_buckets_of(r, job) + bucket;
}

/* A bucket joins those that wait for the job's channels; they are carried one after the other. */
static void bucket_ready(struct run *r, int64_t job, int64_t bucket) {
    r->j->was_ready[place_of(r, job, bucket)] = r->now;
    r->jobs[job].missing[bucket] = r->j->channels[job + 1] - r->j->channels[job];
    for (int64_t c = r->j->channels[job]; c < r->j->channels[job + 1]; c++) {
        struct stream *stream = &r->streams[r->s->flows + c];
        if (stream->marks++ == 0) {
            stream->mark = bucket;
            stream->left = nf_part(r, job, c, bucket);
            nf_activate(r, r->s->flows + c);
        }
    }
}

static void bucket_reduced(struct run *r, int64_t job, int64_t bucket) {
    r->j->was_reduced[place_of(r, job, bucket)] = r->now;
    one_less(r, job);
}

/* The channel has carried a bucket: on with the next, or rest. Buckets become ready in the order of their numbers. */
int nf_bucket_carried(struct run *r, int64_t channel) {
    int64_t id = r->s->flows + channel, job = r->job_of[channel];
    struct stream *stream = &r->streams[id];
    int64_t bucket = stream->mark;
    if (--r->jobs[job].missing[bucket] == 0)
        nf_set_timer(r, job, JOB_TIMERS + nf_buckets_of(r, job) + bucket,
                     r->now + r->j->latency[job] + r->j->local[job] * r->j->bytes[r->j->buckets[job] + bucket]);
    r->s->carried[channel] += nf_part(r, job, channel, bucket);
    if (--stream->marks == 0) {
        r->s->busy[channel] += r->now - stream->began;
        return 0;
    }
    stream->mark = bucket + 1;
    stream->left = nf_part(r, job, channel, bucket + 1);
    return 1;
}

void nf_job_due(struct run *r, int32_t timer) {
    int64_t job = r->timer_job[timer], which = timer - r->first_timer[job], buckets = nf_buckets_of(r, job);
    if (which == JOB_START)
        begin_iteration(r, job);
    else if (which == JOB_COMPUTED)
        one_less(r, job);
    else if (which < JOB_TIMERS + buckets)
        bucket_ready(r, job, which - JOB_TIMERS);
    else
        bucket_reduced(r, job, which - JOB_TIMERS - buckets);
}
