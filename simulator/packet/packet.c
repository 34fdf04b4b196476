/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "packet.h"

#include <stdlib.h>

struct all {
    struct np_network network;
    struct np_reduction reduction;
    struct np_exchanges exchanges;
    struct np_tcp tcp;
    void *held[24]; /* all that is to be freed */
    int held_count;
};

static void *make(struct all *a, int64_t count, size_t size) {
    void *memory = calloc((size_t)count + 1, size);
    if (!memory) a->network.broken = 1;
    a->held[a->held_count++] = memory;
    return memory;
}

static void make_lines(struct all *a, const struct np_setup *s) {
    struct np_line *lines = make(a, s->lines, sizeof *lines);
    for (int64_t i = 0; lines && i < s->lines; i++) {
        const double *c = s->line + i * NP_LINE_COLUMNS;
        lines[i] = (struct np_line){.ps_per_byte = c[0], .delay = (np_time)c[1], .room_packets = (int64_t)c[2],
                                    .room_bytes = (int64_t)c[3], .mark_from = c[4], .mark_all = c[5], .mark_share = c[6],
                                    .loss = c[7], .burst = c[8], .head = NP_NOBODY, .tail = NP_NOBODY, .cursor = NP_NOBODY};
    }
    a->network.lines = lines;
}

static void make_trees(struct all *a, const struct np_setup *s) {
    struct np_arc *arcs = make(a, s->arcs, sizeof *arcs);
    struct np_edge *edges = make(a, s->edges, sizeof *edges);
    struct np_node *nodes = make(a, s->nodes, sizeof *nodes);
    for (int64_t i = 0; arcs && i < s->arcs; i++) {
        const int64_t *c = s->arc + i * NP_ARC_COLUMNS;
        arcs[i] = (struct np_arc){(int32_t)c[0], (int32_t)c[1], (int32_t)c[2], (int32_t)c[3]};
    }
    for (int64_t i = 0; edges && i < s->edges; i++) {
        const int64_t *c = s->edge + i * NP_EDGE_COLUMNS;
        edges[i] = (struct np_edge){(int32_t)c[0], (int32_t)c[1], (int32_t)c[2], (int32_t)c[3], (int32_t)c[4], (int32_t)c[5]};
    }
    for (int64_t i = 0; nodes && i < s->nodes; i++) {
        const int64_t *c = s->node + i * NP_NODE_COLUMNS;
        nodes[i] = (struct np_node){(int32_t)c[0], (int32_t)c[1], (int32_t)c[2], (int32_t)c[3],
                                    (int32_t)c[4], (int32_t)c[5], (int32_t)c[6]};
    }
    a->reduction.arcs = arcs;
    a->reduction.edges = edges;
    a->reduction.nodes = nodes;
    a->reduction.node_count = s->nodes;
    a->reduction.pools = make(a, s->nodes, sizeof *a->reduction.pools);
}

static void make_jobs(struct all *a, const struct np_setup *s) {
    struct np_job *jobs = make(a, s->jobs, sizeof *jobs);
    struct np_worker *workers = make(a, s->workers, sizeof *workers);
    struct np_bucket *buckets = make(a, s->buckets, sizeof *buckets);
    for (int64_t i = 0; jobs && i < s->jobs; i++) {
        const int64_t *c = s->job + i * NP_JOB_COLUMNS;
        jobs[i] = (struct np_job){.first_worker = (int32_t)c[0], .workers = (int32_t)c[1], .first_bucket = (int32_t)c[2],
                                  .buckets = (int32_t)c[3], .iterations = (int32_t)c[4], .tree_count = (int32_t)c[5],
                                  .packet_bytes = (int32_t)c[6], .first_time = (int32_t)c[7], .start = c[8], .compute = c[9]};
    }
    for (int64_t i = 0; workers && i < s->workers; i++) {
        const int64_t *c = s->worker + i * NP_WORKER_COLUMNS;
        workers[i] = (struct np_worker){.job = (int32_t)c[0], .rank = (int32_t)c[1], .first_edge = (int32_t)c[2], .late = c[3]};
    }
    for (int64_t i = 0; buckets && i < s->buckets; i++) {
        const int64_t *c = s->bucket + i * NP_BUCKET_COLUMNS;
        buckets[i] = (struct np_bucket){c[0], c[1], c[2]};
    }
    struct np_reduction *r = &a->reduction;
    r->network = &a->network;
    r->hops = s->hop;
    r->worker_edges = s->worker_edge;
    r->buckets = buckets;
    r->assignments = s->assignment;
    r->jobs = jobs;
    r->workers = workers;
    r->job_count = s->jobs;
    r->worker_count = s->workers;
    r->waiting_for = make(a, s->buckets, sizeof *r->waiting_for);
    r->times = s->time;
}

static void make_exchanges(struct all *a, const struct np_setup *s) {
    struct np_exchange *exchanges = make(a, s->exchanges, sizeof *exchanges);
    struct np_stream *streams = make(a, s->streams, sizeof *streams);
    struct np_portion *portions = make(a, s->portions, sizeof *portions);
    for (int64_t i = 0; exchanges && i < s->exchanges; i++) {
        const int64_t *c = s->exchange + i * NP_EXCHANGE_COLUMNS;
        exchanges[i] = (struct np_exchange){.first_stream = (int32_t)c[0], .streams = (int32_t)c[1], .first_bucket = (int32_t)c[2],
                                            .buckets = (int32_t)c[3], .iterations = (int32_t)c[4], .steps = (int32_t)c[5],
                                            .first_time = (int32_t)c[6], .start = c[7], .compute = c[8]};
    }
    for (int64_t i = 0; streams && i < s->streams; i++) {
        const double *c = s->stream + i * NP_STREAM_COLUMNS;
        streams[i] = (struct np_stream){.flow = (int32_t)c[0], .exchange = (int32_t)c[1], .first_source = (int32_t)c[2],
                                        .sources = (int32_t)c[3], .factor = c[4]};
    }
    for (int64_t i = 0; portions && i < s->portions; i++)
        portions[i] = (struct np_portion){s->portion[2 * i], s->portion[2 * i + 1]};
    a->exchanges = (struct np_exchanges){.network = &a->network, .tcp = &a->tcp, .exchanges = exchanges, .streams = streams,
                                         .portions = portions, .sources = s->source, .count = s->exchanges,
                                         .stream_count = s->streams, .times = s->time};
    a->exchanges.first_timer = (uint32_t)(s->workers + s->jobs);
}

/* Rows come in the order of their start. */
static void make_flows(struct all *a, const struct np_setup *s) {
    struct np_flow *flows = make(a, s->flows, sizeof *flows);
    for (int64_t i = 0; flows && i < s->flows; i++) {
        const int64_t *c = s->flow + i * NP_FLOW_COLUMNS;
        flows[i] = (struct np_flow){.there = (int32_t)c[0], .back = (int32_t)c[1], .bytes = c[2], .start = c[3],
                                    .transport = (int32_t)c[4], .stream = (int32_t)c[5]};
    }
    a->tcp = (struct np_tcp){.network = &a->network, .hops = s->hop, .settings = &s->tcp, .flows = flows, .flow_count = s->flows};
}

static void handle(struct all *a, struct np_event event) {
    uint32_t whose = event.what & ((1u << NP_WHOSE_BITS) - 1);
    enum np_what what = (enum np_what)(event.what >> NP_WHOSE_BITS);
    if (what == NP_LINE) {
        int32_t packet = np_line_arrival(&a->network, (int32_t)whose);
        if (a->network.packets[packet].kind <= NP_ANSWER)
            np_reduction_packet(&a->reduction, packet);
        else
            np_tcp_packet(&a->tcp, packet);
        return;
    }
    if (what == NP_FLOWS) {
        np_tcp_begin(&a->tcp);
        return;
    }
    np_events_pop(&a->network.events);
    if (what != NP_WORKER)
        np_tcp_timer(&a->tcp, what, whose);
    else if (whose >= a->exchanges.first_timer)
        np_exchanges_timer(&a->exchanges, whose - a->exchanges.first_timer);
    else
        np_reduction_timer(&a->reduction, whose);
}

static void give_results(const struct all *a, struct np_setup *s) {
    for (int64_t i = 0; i < s->lines; i++) {
        const struct np_line *l = &a->network.lines[i];
        double *to = s->line_result + i * NP_LINE_RESULTS;
        double from[NP_LINE_RESULTS] = {(double)l->sent,   (double)l->sent_bytes,   (double)l->dropped, (double)l->lost,
                                        (double)l->marked, (double)l->most_waiting, l->waited,          0};
        for (int k = 0; k < NP_LINE_RESULTS; k++) to[k] = from[k];
    }
    for (int64_t i = 0; i < s->nodes; i++) {
        const struct np_pool *p = &a->reduction.pools[i];
        double *to = s->node_result + i * NP_NODE_RESULTS;
        for (int k = 0; k < NP_VERDICTS; k++) to[k] = (double)p->verdicts[k];
        to[NP_VERDICTS] = (double)p->most_open;
        to[NP_VERDICTS + 1] = p->area;
    }
    for (int64_t i = 0; i < s->jobs; i++) {
        s->job_result[i * NP_JOB_RESULTS] = a->reduction.jobs[i].iteration;
        s->job_result[i * NP_JOB_RESULTS + 1] = a->reduction.jobs[i].wrong;
    }
    for (int64_t i = 0; i < s->workers; i++) s->worker_result[i] = a->reduction.workers[i].retransmits;
    for (int64_t i = 0; i < s->exchanges; i++) s->exchange_result[i] = a->exchanges.exchanges[i].iteration;
    for (int64_t i = 0; i < s->flows; i++) {
        const struct np_flow *f = &a->tcp.flows[i];
        int64_t *to = s->flow_result + i * NP_FLOW_RESULTS;
        to[0] = f->end;
        to[1] = f->timeouts;
        to[2] = f->again;
    }
    s->packets = a->network.packet_room;
    s->end = a->network.now;
    s->failed = a->reduction.failed;
}

/* What flows have got through by each moment that is over at `now`. */
static int64_t take_samples(const struct all *a, const struct np_setup *s, int64_t taken, np_time now) {
    for (; taken < s->samples && (taken + 1) * s->sample_every <= now; taken++)
        for (int64_t i = 0; i < s->flows; i++) s->sample[taken * s->flows + i] = a->tcp.flows[i].una;
    return taken;
}

int np_run(struct np_setup *s) {
    struct all a = {.network = {.free = NP_NOBODY, .random = s->seed}};
    make_lines(&a, s);
    make_trees(&a, s);
    make_jobs(&a, s);
    make_exchanges(&a, s);
    make_flows(&a, s);
    int good = !a.network.broken;
    if (good) {
        good = np_tcp_start(&a.tcp) == 0 && np_reduction_start(&a.reduction) == 0;
        np_exchanges_start(&a.exchanges);
        struct np_events *events = &a.network.events;
        int64_t taken = 0;
        while (good && events->count && events->heap[0].at <= s->until) {
            struct np_event event = events->heap[0];
            taken = take_samples(&a, s, taken, event.at);
            a.network.now = event.at;
            handle(&a, event);
            s->events++;
            good = !a.network.broken && !a.reduction.failed;
        }
        take_samples(&a, s, taken, s->until < NP_NEVER - 1 ? s->until : a.network.now);
        np_reduction_stop(&a.reduction);
        np_tcp_stop(&a.tcp);
        give_results(&a, s);
    }
    for (int i = 0; i < a.held_count; i++) free(a.held[i]);
    free(a.network.packets);
    free(a.network.events.heap);
    return a.network.broken ? -1 : 0;
}
