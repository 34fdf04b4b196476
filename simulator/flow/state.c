/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <math.h>
#include <stdlib.h>

int sf_state_open(struct sf_run *r) {
    const struct sf_streams *s = r->s;
    const struct sf_jobs *j = r->j;
    int64_t streams = s->flows + s->channels, timers = 0, buckets = j->jobs ? j->buckets[j->jobs] : 0;
    for (int64_t job = 0; job < j->jobs; job++) timers += SF_JOB_BUCKETS + 2 * sf_bucket_count(r, job);
    r->streams = calloc((size_t)streams + 1, sizeof *r->streams);
    r->jobs = calloc((size_t)j->jobs + 1, sizeof *r->jobs);
    r->missing = calloc((size_t)buckets + 1, sizeof *r->missing);
    r->job_of = calloc((size_t)s->channels + 1, sizeof *r->job_of);
    r->first_timer = calloc((size_t)j->jobs + 1, sizeof *r->first_timer);
    r->timer_job = calloc((size_t)timers + 1, sizeof *r->timer_job);
    r->queue = calloc((size_t)r->n->links + 1, sizeof *r->queue);
    r->queue_area = calloc((size_t)r->n->links + 1, sizeof *r->queue_area);
    r->queue_since = calloc((size_t)r->n->links + 1, sizeof *r->queue_since);
    if (sf_heap_open(&r->completions, streams) || sf_heap_open(&r->timers, timers) ||
        sf_max_min_open(&r->rates, (int32_t)r->n->links, (int32_t)streams, s->rows[streams]) || !r->streams || !r->jobs ||
        !r->missing || !r->job_of || !r->first_timer || !r->timer_job || !r->queue || !r->queue_area || !r->queue_since)
        return -1;
    r->rates.tolerance = r->n->tolerance;
    for (int64_t l = 0; l < r->n->links; l++) r->rates.links[l].capacity = r->n->capacity[l];
    for (int64_t i = 0; i < streams; i++) r->streams[i].pace = INFINITY;
    for (int64_t i = 0; i < streams; i++)
        r->rates.flows[i] =
            (struct sf_flow){.first = s->rows[i], .last = s->rows[i + 1], .weight = s->weight[i], .cap = s->cap[i]};
    for (int64_t e = 0; e < s->rows[streams]; e++) r->rates.entries[e] = (struct sf_entry){s->links[e], 0, s->coefs[e]};
    timers = 0;
    for (int64_t job = 0; job < j->jobs; job++) {
        r->first_timer[job] = timers;
        for (int64_t t = SF_JOB_BUCKETS + 2 * sf_bucket_count(r, job); t > 0; t--) r->timer_job[timers++] = job;
        r->jobs[job].missing = r->missing + j->buckets[job];
        for (int64_t c = j->channels[job]; c < j->channels[job + 1]; c++) r->job_of[c] = job;
        sf_set_timer(r, job, SF_JOB_START, j->start[job]);
    }
    return 0;
}

void sf_state_close(struct sf_run *r) {
    sf_max_min_close(&r->rates);
    sf_heap_close(&r->completions);
    sf_heap_close(&r->timers);
    free(r->streams);
    free(r->jobs);
    free(r->missing);
    free(r->job_of);
    free(r->first_timer);
    free(r->timer_job);
    free(r->queue);
    free(r->queue_area);
    free(r->queue_since);
}
