/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The event loop, and the two functions of flow.h. */
#include <math.h>

#include "flow.h"
#include "jobs.h"
#include "queues.h"
#include "state.h"
#include "streams.h"

static void on_completion(struct sf_run *r, int32_t stream) {
    sf_stream_advance(r, stream);
    if (stream >= r->s->flows && sf_job_on_carried(r, stream - r->s->flows)) {
        sf_stream_schedule(r, stream);
        return;
    }
    sf_heap_remove(&r->completions, stream);
    sf_max_min_remove(&r->rates, stream);
    if (stream < r->s->flows) sf_flow_complete(r, stream);
}

/* Solves the rates that the events of this moment affect, and updates streams and queues accordingly. */
static void update_rates(struct sf_run *r) {
    struct sf_max_min *rates = &r->rates;
    if (!rates->touched_count && !rates->chosen_count) return;
    sf_max_min_solve(rates);
    for (int32_t i = 0; i < rates->chosen_count; i++)
        if (rates->flows[rates->chosen[i]].is_active) sf_stream_advance(r, rates->chosen[i]);
    sf_max_min_commit(rates);
    for (int32_t i = 0; i < rates->chosen_count; i++) {
        int32_t id = rates->chosen[i];
        if (!rates->flows[id].is_active) continue;
        if (id < r->s->flows) sf_flow_update_pace(r, id);
        sf_stream_schedule(r, id);
        double *fastest = id >= r->s->flows ? &r->s->fastest[id - r->s->flows] : NULL;
        if (fastest && rates->flows[id].rate > *fastest) *fastest = rates->flows[id].rate;
    }
    for (int32_t i = 0; i < rates->touched_count; i++) sf_queue_update(r, rates->touched[i]);
}

static void process_events(struct sf_run *r, double until) {
    int64_t next = 0;
    for (;;) {
        double start = next < r->s->flows ? r->s->start[next] : INFINITY;
        double now = fmin(start, fmin(sf_heap_first_time(&r->completions), sf_heap_first_time(&r->timers)));
        if (!(now < INFINITY) || now > until || r->out_of_memory) break;
        r->now = now;
        sf_max_min_begin(&r->rates);
        for (; sf_heap_first_time(&r->completions) <= now; r->events++) on_completion(r, r->completions.order[0]);
        for (; sf_heap_first_time(&r->timers) <= now; r->events++) {
            int32_t timer = r->timers.order[0];
            sf_heap_remove(&r->timers, timer);
            sf_job_on_timer(r, timer);
        }
        for (; next < r->s->flows && r->s->start[next] <= now; next++, r->events++) sf_flow_start(r, next);
        update_rates(r);
    }
    if (until < INFINITY) r->now = until;
}

/* Accounts what incomplete streams have carried, and the queues. */
static void close_accounts(struct sf_run *r) {
    const struct sf_streams *s = r->s;
    for (int64_t id = 0; id < s->flows + s->channels; id++) {
        double bytes = 0;
        int is_active = r->rates.flows[id].is_active;
        if (is_active) sf_stream_advance(r, (int32_t)id);
        if (id >= s->flows) {
            int64_t c = id - s->flows;
            if (is_active) {
                s->carried[c] += sf_channel_bytes(r, r->job_of[c], c, r->streams[id].bucket) - r->streams[id].left;
                s->busy[c] += r->now - r->streams[id].began;
            }
            bytes = s->carried[c];
        } else if (is_active) {
            bytes = s->bytes[id] - r->streams[id].left;
        }
        for (int64_t e = s->rows[id]; e < s->rows[id + 1]; e++) r->n->sent[s->links[e]] += bytes * s->coefs[e];
    }
    sf_queues_close(r);
}

int sf_flow_run(const struct sf_network *network, const struct sf_streams *streams, const struct sf_jobs *jobs, double until,
                double *end, int64_t *events) {
    struct sf_run r = {.n = network, .s = streams, .j = jobs};
    int result = sf_state_open(&r);
    if (!result) {
        process_events(&r, until);
        result = r.out_of_memory ? -1 : 0;
        close_accounts(&r);
        *end = r.now;
        *events = r.events;
    }
    sf_state_close(&r);
    return result;
}

int sf_flow_rates(int64_t links, const double *capacity, int64_t flows, const int64_t *rows, const int32_t *row_links,
                  const double *coefs, const double *weight, const double *cap, int64_t leaving, double *rate,
                  int32_t *bottleneck) {
    struct sf_max_min m;
    if (sf_max_min_open(&m, (int32_t)links, (int32_t)flows, rows[flows])) return -1;
    int result = 0;
    for (int64_t l = 0; l < links; l++) m.links[l].capacity = capacity[l];
    for (int64_t e = 0; e < rows[flows]; e++) m.entries[e] = (struct sf_entry){row_links[e], 0, coefs[e]};
    for (int64_t f = 0; f < flows && !result; f++) { /* one by one, so that each local correction is exercised */
        m.flows[f] = (struct sf_flow){.first = rows[f], .last = rows[f + 1], .weight = weight[f], .cap = cap[f]};
        sf_max_min_begin(&m);
        result = sf_max_min_add(&m, (int32_t)f);
        sf_max_min_solve(&m);
        sf_max_min_commit(&m);
    }
    for (int32_t f = 0; f < leaving && !result; f++) {
        sf_max_min_begin(&m);
        sf_max_min_remove(&m, f);
        sf_max_min_solve(&m);
        sf_max_min_commit(&m);
        m.flows[f].rate = 0;
    }
    for (int64_t f = 0; f < flows; f++) {
        rate[f] = m.flows[f].rate;
        bottleneck[f] = m.flows[f].bottleneck;
    }
    sf_max_min_close(&m);
    return result;
}
