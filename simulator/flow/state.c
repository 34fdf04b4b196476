/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <math.h>
#include <stdlib.h>

int nf_state_open(struct run *r) {
    const struct nf_streams *s = r->s;
    const struct nf_jobs *j = r->j;
    int64_t streams = s->flows + s->channels, timers = 0, buckets = j->jobs ? j->buckets[j->jobs] : 0;
    for (int64_t job = 0; job < j->jobs; job++)
        timers += JOB_TIMERS + 2 * nf_buckets_of(r, job);
    r->streams = calloc((size_t)streams + 1, sizeof *r->streams);
    r->jobs = calloc((size_t)j->jobs + 1, sizeof *r->jobs);
    r->missing = calloc((size_t)buckets + 1, sizeof *r->missing);
    r->job_of = calloc((size_t)s->channels + 1, sizeof *r->job_of);
    r->first_timer = calloc((size_t)j->jobs + 1, sizeof *r->first_timer);
    r->timer_job = calloc((size_t)timers + 1, sizeof *r->timer_job);
    r->queue = calloc((size_t)r->n->links + 1, sizeof *r->queue);
    r->queue_area = calloc((size_t)r->n->links + 1, sizeof *r->queue_area);
    r->queue_since = calloc((size_t)r->n->links + 1, sizeof *r->queue_since);
    if (nf_heap_open(&r->finish, streams) || nf_heap_open(&r->due, timers) ||
        nf_shares_open(&r->shares, (int32_t)r->n->links, (int32_t)streams, s->rows[streams]) || !r->streams ||
        !r->jobs || !r->missing || !r->job_of || !r->first_timer || !r->timer_job || !r->queue || !r->queue_area ||
        !r->queue_since)
        return -1;
    r->shares.tolerance = r->n->tolerance;
    for (int64_t l = 0; l < r->n->links; l++)
        r->shares.links[l].capacity = r->n->capacity[l];
    for (int64_t i = 0; i < streams; i++)
        r->streams[i].pace = INFINITY;
    for (int64_t i = 0; i < streams; i++)
        r->shares.flows[i] = (struct nf_flow){
            .first = s->rows[i], .last = s->rows[i + 1], .weight = s->weight[i], .cap = s->cap[i]};
    for (int64_t e = 0; e < s->rows[streams]; e++)
        r->shares.entries[e] = (struct nf_entry){s->links[e], 0, s->coefs[e]};
    timers = 0;
    for (int64_t job = 0; job < j->jobs; job++) {
        r->first_timer[job] = timers;
        for (int64_t t = JOB_TIMERS + 2 * nf_buckets_of(r, job); t > 0; t--)
            r->timer_job[timers++] = job;
        r->jobs[job].missing = r->missing + j->buckets[job];
        for (int64_t c = j->channels[job]; c < j->channels[job + 1]; c++)
            r->job_of[c] = job;
        nf_set_timer(r, job, JOB_START, j->start[job]);
    }
    return 0;
}

void nf_state_close(struct run *r) {
    nf_shares_close(&r->shares);
    nf_heap_close(&r->finish);
    nf_heap_close(&r->due);
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
