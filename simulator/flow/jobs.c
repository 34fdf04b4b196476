/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"

#include "streams.h"

static void start_iteration(struct sf_run *r, int64_t job) {
    int64_t buckets = sf_bucket_count(r, job), first = r->j->buckets[job];
    r->j->began[r->j->first_iteration[job] + r->jobs[job].iteration] = r->now;
    r->jobs[job].open = buckets + 1;
    for (int64_t b = 0; b < buckets; b++) sf_set_timer(r, job, SF_JOB_BUCKETS + b, r->now + r->j->ready[first + b]);
    sf_set_timer(r, job, SF_JOB_COMPUTED, r->now + r->j->compute[job]);
}

/* Completes a part of the iteration: a bucket is reduced, or the compute is done. */
static void complete_part(struct sf_run *r, int64_t job) {
    struct sf_job *own = &r->jobs[job];
    if (--own->open) return;
    r->j->ended[r->j->first_iteration[job] + own->iteration] = r->now;
    if (++own->iteration < r->j->iterations[job]) start_iteration(r, job);
}

static int64_t result_place(const struct sf_run *r, int64_t job, int64_t bucket) {
    return r->j->first_reduced[job] + r->jobs[job].iteration * sf_bucket_count(r, job) + bucket;
}

/* Queues a bucket at the job's channels, which carry one bucket after the other. */
static void on_bucket_ready(struct sf_run *r, int64_t job, int64_t bucket) {
    r->j->was_ready[result_place(r, job, bucket)] = r->now;
    r->jobs[job].missing[bucket] = r->j->channels[job + 1] - r->j->channels[job];
    for (int64_t c = r->j->channels[job]; c < r->j->channels[job + 1]; c++) {
        struct sf_stream *stream = &r->streams[r->s->flows + c];
        if (stream->waiting++ == 0) {
            stream->bucket = bucket;
            stream->left = sf_channel_bytes(r, job, c, bucket);
            sf_stream_activate(r, r->s->flows + c);
        }
    }
}

static void on_bucket_reduced(struct sf_run *r, int64_t job, int64_t bucket) {
    r->j->was_reduced[result_place(r, job, bucket)] = r->now;
    complete_part(r, job);
}

int sf_job_on_carried(struct sf_run *r, int64_t channel) {
    int64_t id = r->s->flows + channel, job = r->job_of[channel];
    struct sf_stream *stream = &r->streams[id];
    int64_t bucket = stream->bucket;
    if (--r->jobs[job].missing[bucket] == 0)
        sf_set_timer(r, job, SF_JOB_BUCKETS + sf_bucket_count(r, job) + bucket,
                     r->now + r->j->latency[job] + r->j->local[job] * r->j->bytes[r->j->buckets[job] + bucket]);
    r->s->carried[channel] += sf_channel_bytes(r, job, channel, bucket);
    if (--stream->waiting == 0) {
        r->s->busy[channel] += r->now - stream->began;
        return 0;
    }
    stream->bucket = bucket + 1; /* buckets become ready in the order of their numbers */
    stream->left = sf_channel_bytes(r, job, channel, bucket + 1);
    return 1;
}

void sf_job_on_timer(struct sf_run *r, int32_t timer) {
    int64_t job = r->timer_job[timer], own = timer - r->first_timer[job], buckets = sf_bucket_count(r, job);
    if (own == SF_JOB_START)
        start_iteration(r, job);
    else if (own == SF_JOB_COMPUTED)
        complete_part(r, job);
    else if (own < SF_JOB_BUCKETS + buckets)
        on_bucket_ready(r, job, own - SF_JOB_BUCKETS);
    else
        on_bucket_reduced(r, job, own - SF_JOB_BUCKETS - buckets);
}
