/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "packet.h"

#include <stdlib.h>

struct all {
    struct np_network network;
    struct np_reduction reduction;
    struct np_exchanges exchanges;
    struct np_tcp tcp;
    void *allocations[24]; /* memory to free */
    int allocation_count;
};

static void *make(struct all *a, int64_t count, size_t size) {
    void *memory = calloc((size_t)count + 1, size);
    if (!memory) a->network.out_of_memory = 1;
    a->allocations[a->allocation_count++] = memory;
    return memory;
}

static void make_links(struct all *a, const struct np_setup *s) {
    struct np_link *links = make(a, s->links, sizeof *links);
    for (int64_t i = 0; links && i < s->links; i++) {
        const double *c = s->link + i * NP_LINK_COLUMNS;
        links[i] = (struct np_link){.ps_per_byte = c[0],
                                    .delay = (np_time)c[1],
                                    .queue_packets = (int64_t)c[2],
                                    .queue_bytes = (int64_t)c[3],
                                    .mark_from = c[4],
                                    .mark_all = c[5],
                                    .mark_share = c[6],
                                    .loss = c[7],
                                    .burst = c[8],
                                    .head = NP_NONE,
                                    .tail = NP_NONE,
                                    .cursor = NP_NONE};
    }
    a->network.links = links;
}

static void make_trees(struct all *a, const struct np_setup *s) {
    struct np_arc *arcs = make(a, s->arcs, sizeof *arcs);
    struct np_edge *edges = make(a, s->edges, sizeof *edges);
    struct np_node *nodes = make(a, s->nodes, sizeof *nodes);
    for (int64_t i = 0; arcs && i < s->arcs; i++) {
        const int64_t *c = s->arc + i * NP_ARC_COLUMNS;
        arcs[i] = (struct np_arc){(int32_t)c[0], (int32_t)c[1], (int32_t)c[2], (int32_t)c[3], (int32_t)c[4], (int32_t)c[5]};
    }
    for (int64_t i = 0; edges && i < s->edges; i++) {
        const int64_t *c = s->edge + i * NP_EDGE_COLUMNS;
        edges[i] = (struct np_edge){(int32_t)c[0], (int32_t)c[1], (int32_t)c[2], (int32_t)c[3],
                                    (int32_t)c[4], (int32_t)c[5], (int32_t)c[6]};
    }
    for (int64_t i = 0; nodes && i < s->nodes; i++) {
        const int64_t *c = s->node + i * NP_NODE_COLUMNS;
        nodes[i] = (struct np_node){(int32_t)c[0], (int32_t)c[1], (int32_t)c[2], (int32_t)c[3],
                                    (int32_t)c[4], (int32_t)c[5], (int32_t)c[6], (int32_t)c[7]};
    }
    a->reduction.arcs = arcs;
    a->reduction.edges = edges;
    a->reduction.nodes = nodes;
    a->reduction.node_count = s->nodes;
    a->reduction.node_slots = make(a, s->nodes, sizeof *a->reduction.node_slots);
}

static void make_jobs(struct all *a, const struct np_setup *s) {
    struct np_job *jobs = make(a, s->jobs, sizeof *jobs);
    struct np_worker *workers = make(a, s->workers, sizeof *workers);
    struct np_bucket *buckets = make(a, s->buckets, sizeof *buckets);
    for (int64_t i = 0; jobs && i < s->jobs; i++) {
        const int64_t *c = s->job + i * NP_JOB_COLUMNS;
        jobs[i] = (struct np_job){.first_worker = (int32_t)c[0],
                                  .workers = (int32_t)c[1],
                                  .first_bucket = (int32_t)c[2],
                                  .buckets = (int32_t)c[3],
                                  .iterations = (int32_t)c[4],
                                  .packet_bytes = (int32_t)c[5],
                                  .short_bytes = (int32_t)c[6],
                                  .first_time = (int32_t)c[7],
                                  .start = c[8],
                                  .compute = c[9]};
    }
    for (int64_t i = 0; workers && i < s->workers; i++) {
        const int64_t *c = s->worker + i * NP_WORKER_COLUMNS;
        workers[i] = (struct np_worker){.job = (int32_t)c[0], .rank = (int32_t)c[1], .first_edge = (int32_t)c[2], .late = c[3]};
    }
    for (int64_t i = 0; buckets && i < s->buckets; i++) {
        const int64_t *c = s->bucket + i * NP_BUCKET_COLUMNS;
        buckets[i] = (struct np_bucket){c[0], c[1], c[2], c[3]};
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
    struct np_exchange_bucket *exchange_buckets = make(a, s->exchange_buckets, sizeof *exchange_buckets);
    for (int64_t i = 0; exchanges && i < s->exchanges; i++) {
        const int64_t *c = s->exchange + i * NP_EXCHANGE_COLUMNS;
        exchanges[i] = (struct np_exchange){.first_stream = (int32_t)c[0],
                                            .streams = (int32_t)c[1],
                                            .first_bucket = (int32_t)c[2],
                                            .buckets = (int32_t)c[3],
                                            .iterations = (int32_t)c[4],
                                            .steps = (int32_t)c[5],
                                            .first_time = (int32_t)c[6],
                                            .start = c[7],
                                            .compute = c[8]};
    }
    for (int64_t i = 0; streams && i < s->streams; i++) {
        const double *c = s->stream + i * NP_STREAM_COLUMNS;
        streams[i] = (struct np_stream){.flow = (int32_t)c[0],
                                        .exchange = (int32_t)c[1],
                                        .first_source = (int32_t)c[2],
                                        .sources = (int32_t)c[3],
                                        .factor = c[4]};
    }
    for (int64_t i = 0; exchange_buckets && i < s->exchange_buckets; i++)
        exchange_buckets[i] = (struct np_exchange_bucket){s->exchange_bucket[2 * i], s->exchange_bucket[2 * i + 1]};
    a->exchanges = (struct np_exchanges){.network = &a->network,
                                         .tcp = &a->tcp,
                                         .exchanges = exchanges,
                                         .streams = streams,
                                         .exchange_buckets = exchange_buckets,
                                         .sources = s->source,
                                         .count = s->exchanges,
                                         .stream_count = s->streams,
                                         .times = s->time};
    a->exchanges.first_timer = (uint32_t)(s->workers + s->jobs);
}

/* Rows are in the order of their start. */
static void make_flows(struct all *a, const struct np_setup *s) {
    struct np_flow *flows = make(a, s->flows, sizeof *flows);
    for (int64_t i = 0; flows && i < s->flows; i++) {
        const int64_t *c = s->flow + i * NP_FLOW_COLUMNS;
        flows[i] = (struct np_flow){.forward_path = (int32_t)c[0],
                                    .reverse_path = (int32_t)c[1],
                                    .bytes = c[2],
                                    .start = c[3],
                                    .transport = (int32_t)c[4],
                                    .stream = (int32_t)c[5]};
    }
    a->tcp =
        (struct np_tcp){.network = &a->network, .hops = s->hop, .settings = &s->tcp, .flows = flows, .flow_count = s->flows};
}

static void handle(struct all *a, struct np_event event) {
    uint32_t owner_id = event.what & ((1u << NP_OWNER_BITS) - 1);
    enum np_event_type what = (enum np_event_type)(event.what >> NP_OWNER_BITS);
    if (what == NP_LINK) {
        int32_t packet = np_link_take_arrival(&a->network, (int32_t)owner_id);
        if (a->network.packets[packet].kind <= NP_RESEND)
            np_reduction_on_packet(&a->reduction, packet);
        else
            np_tcp_on_packet(&a->tcp, packet);
        return;
    }
    if (what == NP_FLOWS) {
        np_tcp_start_flows(&a->tcp);
        return;
    }
    np_events_pop(&a->network.events);
    if (what != NP_WORKER)
        np_tcp_on_timer(&a->tcp, what, owner_id);
    else if (owner_id >= a->exchanges.first_timer)
        np_exchanges_on_timer(&a->exchanges, owner_id - a->exchanges.first_timer);
    else
        np_reduction_on_timer(&a->reduction, owner_id);
}

static void give_results(const struct all *a, struct np_setup *s) {
    for (int64_t i = 0; i < s->links; i++) {
        const struct np_link *l = &a->network.links[i];
        double *to = s->link_result + i * NP_LINK_RESULTS;
        double from[NP_LINK_RESULTS] = {(double)l->sent,   (double)l->sent_bytes,  (double)l->dropped, (double)l->lost,
                                        (double)l->marked, (double)l->max_waiting, l->waiting_area,    0};
        for (int k = 0; k < NP_LINK_RESULTS; k++) to[k] = from[k];
    }
    for (int64_t i = 0; i < s->nodes; i++) {
        const struct np_node_slots *n = &a->reduction.node_slots[i];
        double *to = s->node_result + i * NP_NODE_RESULTS;
        for (int k = 0; k < NF_VERDICTS; k++) to[k] = (double)n->verdicts[k];
        to[NF_VERDICTS] = (double)n->max_open;
        to[NF_VERDICTS + 1] = n->open_area;
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
        to[2] = f->retransmissions;
    }
    s->packets = a->network.packet_capacity;
    s->end = a->network.now;
    s->failed = a->reduction.failed;
}

/* Writes the samples of the flows at all times up to `now`. */
static int64_t take_samples(const struct all *a, const struct np_setup *s, int64_t taken, np_time now) {
    for (; taken < s->samples && (taken + 1) * s->sample_every <= now; taken++)
        for (int64_t i = 0; i < s->flows; i++) s->sample[taken * s->flows + i] = a->tcp.flows[i].una;
    return taken;
}

int np_run(struct np_setup *s) {
    struct all a = {.network = {.free = NP_NONE, .random = s->seed}};
    make_links(&a, s);
    make_trees(&a, s);
    make_jobs(&a, s);
    make_exchanges(&a, s);
    make_flows(&a, s);
    int good = !a.network.out_of_memory;
    if (good) {
        good = np_tcp_init(&a.tcp) == 0 && np_reduction_init(&a.reduction) == 0;
        np_exchanges_start(&a.exchanges);
        struct np_events *events = &a.network.events;
        int64_t taken = 0;
        while (good && events->count && events->heap[0].at <= s->until) {
            struct np_event event = events->heap[0];
            taken = take_samples(&a, s, taken, event.at);
            a.network.now = event.at;
            handle(&a, event);
            s->events++;
            good = !a.network.out_of_memory && !a.reduction.failed;
        }
        take_samples(&a, s, taken, s->until < NP_NEVER - 1 ? s->until : a.network.now);
        np_reduction_free(&a.reduction);
        np_tcp_free(&a.tcp);
        give_results(&a, s);
    }
    for (int i = 0; i < a.allocation_count; i++) free(a.allocations[i]);
    free(a.network.packets);
    free(a.network.events.heap);
    return a.network.out_of_memory ? -1 : 0;
}
