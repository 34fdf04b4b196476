/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "reduction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 64, GRADIENT = 0x10, RESULT = 0x11, ROUND_MASK = (1 << 20) - 1, LEAST_WAIT = 1000 };

#define PS_PER_SECOND 1e12

/* docs/protocol.md, section 2. */
struct wire {
    uint8_t version_kind, flags;
    uint16_t tree;
    uint32_t tag;
    uint16_t slot, child;
    uint8_t exponent, reserved;
    uint16_t lanes;
    uint32_t lane[NP_LANES];
};

_Static_assert(sizeof(struct wire) == NP_WIRE_BYTES, "the packet of section 2");

static double seconds(const struct np_reduction *r) { return (double)r->network->now / PS_PER_SECOND; }

/* What worker `rank` has at element i: small whole numbers, so that sums are exact. */
static float element(int64_t i, int64_t rank) { return (float)((i * 7919 >> 3 & 127) * (rank + 1)); }

static float sum_of(int64_t i, int64_t workers) { return (float)((i * 7919 >> 3 & 127) * (workers * (workers + 1) / 2)); }

static void copy_to_arcs(struct np_reduction *r, int32_t from, int32_t first, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        int32_t copy = np_packet_new(r->network);
        if (copy == NP_NOBODY) return;
        r->network->packets[copy] = r->network->packets[from];
        r->network->packets[copy].kind = NP_DOWN;
        r->network->packets[copy].way = first + i;
        np_line_send(r->network, r->arcs[first + i].line, copy);
    }
}

/* Sends the packet by the next hop of its way; false: it is at the end. */
static int go_on(struct np_reduction *r, int32_t packet) {
    struct np_packet *p = &r->network->packets[packet];
    int32_t hop = r->hops[p->way];
    if (hop == NP_END) return 0;
    if (hop < NP_END) { /* joins the way down */
        p->kind = NP_DOWN;
        p->way = -2 - hop;
        hop = r->arcs[p->way].line;
    } else {
        p->way++;
    }
    np_line_send(r->network, hop, packet);
    return 1;
}

static void send_chunks(struct np_reduction *r, struct np_worker *w) {
    struct nf_out out[BURST];
    const int32_t *edges = r->worker_edges + w->first_edge;
    int64_t count;
    do {
        count = nf_core_send(w->core, out, BURST, seconds(r));
        for (int64_t i = 0; i < count; i++) {
            int32_t packet = np_packet_new(r->network);
            if (packet == NP_NOBODY) return;
            int32_t edge = edges[out[i].endpoint];
            struct np_packet *p = &r->network->packets[packet];
            *p = (struct np_packet){.way = r->edges[edge].way, .owner = edge, .kind = NP_UP, .ecn = NP_ECT};
            p->bytes = (uint16_t)r->jobs[w->job].packet_bytes;
            memcpy(p->wire, out[i].packet, NP_WIRE_BYTES);
            if (!go_on(r, packet)) np_packet_free(r->network, packet);
        }
    } while (count == BURST);
}

static void end_iteration(struct np_reduction *r, struct np_job *job);

static void bucket_reduced(struct np_reduction *r, struct np_worker *w, int32_t b) {
    struct np_job *job = &r->jobs[w->job];
    const struct np_bucket *bucket = &r->buckets[job->first_bucket + b];
    int64_t wrong = 0;
    for (int64_t i = 0; i < bucket->chunks * NP_LANES; i++)
        wrong += fabsf(w->arrays[b][i] - sum_of(i, job->workers)) > 0x1p-20f * (float)(128 * job->workers * job->workers);
    job->wrong += (int32_t)wrong;
    free(w->arrays[b]);
    w->arrays[b] = NULL;
    nf_core_release(w->core, w->calls[b]);
    w->calls[b] = NULL;
    if (--r->waiting_for[job->first_bucket + b]) return;
    np_time alone = job->began + bucket->ready + bucket->local;
    np_time done = r->network->now > alone ? r->network->now : alone;
    r->times[2 * (job->first_time + job->iteration * job->buckets + b) + 1] = (double)done / PS_PER_SECOND;
    if (++job->reduced == job->buckets) end_iteration(r, job);
}

static void look_at_calls(struct np_reduction *r, struct np_worker *w) {
    for (int32_t b = w->open; b < w->submitted; b++) {
        if (!w->calls[b]) continue;
        int64_t status = nf_core_outcome(w->calls[b])->status;
        if (status == NF_PENDING) break; /* calls end in their order */
        if (status != NF_DONE) {
            r->failed = (int)status;
            return;
        }
        w->open = b + 1;
        bucket_reduced(r, w, b);
    }
}

static void submit(struct np_reduction *r, struct np_worker *w, int32_t b);

/* What is ready, as soon as the worker is there in this iteration. */
static void submit_all(struct np_reduction *r, struct np_worker *w) {
    const struct np_job *job = &r->jobs[w->job];
    if (r->network->now < job->began + w->late) return;
    while (w->submitted < job->submitted && !r->network->broken) submit(r, w, w->submitted++);
}

/* Lets a worker go on after a packet or a timer. */
static void turn(struct np_reduction *r, struct np_worker *w) {
    submit_all(r, w);
    nf_core_turn(w->core, seconds(r));
    look_at_calls(r, w);
    send_chunks(r, w);
    double next = nf_core_next(w->core, seconds(r));
    np_time comes = r->jobs[w->job].began + w->late;
    np_time due = comes > r->network->now ? comes : NP_NEVER, soonest = r->network->now + LEAST_WAIT;
    if (next < NF_UNKNOWN) {
        np_time wanted = (np_time)(next * PS_PER_SECOND) + 1;
        if (wanted < soonest) wanted = soonest;
        if (wanted < due) due = wanted;
    }
    r->network->broken |= np_timer_set(&r->network->events, &w->timer, due, NP_WORKER, (uint32_t)(w - r->workers)) < 0;
}

static void submit(struct np_reduction *r, struct np_worker *w, int32_t b) {
    const struct np_job *job = &r->jobs[w->job];
    int64_t elements = r->buckets[job->first_bucket + b].chunks * NP_LANES;
    float *array = malloc((size_t)elements * sizeof *array);
    if (!array) {
        r->network->broken = 1;
        return;
    }
    for (int64_t i = 0; i < elements; i++) array[i] = element(i, w->rank);
    struct nf_request request = {.array = array, .elements = elements, .dtype = NF_FLOAT32, .op = NF_SUM,
                                 .scheme = NF_SHARED, .deadline = NF_UNKNOWN};
    w->arrays[b] = array;
    w->calls[b] = nf_core_submit(w->core, &request);
    if (!w->calls[b]) r->network->broken = 1;
}

static void set_job_timer(struct np_reduction *r, struct np_job *job, np_time due) {
    uint32_t whose = (uint32_t)(r->worker_count + (job - r->jobs));
    r->network->broken |= np_timer_set(&r->network->events, &job->timer, due, NP_WORKER, whose) < 0;
}

static void begin_iteration(struct np_reduction *r, struct np_job *job) {
    job->submitted = job->reduced = 0;
    for (int32_t i = 0; i < job->workers; i++) r->workers[job->first_worker + i].open = r->workers[job->first_worker + i].submitted = 0;
    for (int32_t b = 0; b < job->buckets; b++) r->waiting_for[job->first_bucket + b] = job->workers;
    set_job_timer(r, job, job->began + r->buckets[job->first_bucket].ready);
}

static void end_iteration(struct np_reduction *r, struct np_job *job) {
    const double *times = r->times + 2 * (job->first_time + job->iteration * job->buckets);
    double end = (double)(job->began + job->compute) / PS_PER_SECOND;
    for (int32_t b = 0; b < job->buckets; b++) end = fmax(end, times[2 * b + 1]);
    if (++job->iteration == job->iterations) return;
    job->began = (np_time)(end * PS_PER_SECOND + 0.5);
    if (job->began < r->network->now) job->began = r->network->now;
    begin_iteration(r, job);
}

/* Buckets that are ready go to all workers. */
static void submit_ready(struct np_reduction *r, struct np_job *job) {
    np_time since = r->network->now - job->began;
    const struct np_bucket *buckets = r->buckets + job->first_bucket;
    int32_t first = job->submitted;
    double *times = r->times + 2 * (job->first_time + job->iteration * job->buckets);
    for (; job->submitted < job->buckets && buckets[job->submitted].ready <= since; job->submitted++)
        times[2 * job->submitted] = seconds(r);
    if (r->network->broken || job->submitted == first) return;
    if (job->submitted < job->buckets) set_job_timer(r, job, job->began + buckets[job->submitted].ready);
    for (int32_t i = 0; i < job->workers; i++) turn(r, &r->workers[job->first_worker + i]);
}

void np_reduction_timer(struct np_reduction *r, uint32_t whose) {
    struct np_events *events = &r->network->events;
    int is_worker = whose < r->worker_count;
    struct np_job *job = is_worker ? NULL : &r->jobs[whose - r->worker_count];
    struct np_timer *timer = is_worker ? &r->workers[whose].timer : &job->timer;
    int rings = np_timer_rings(events, timer, r->network->now, NP_WORKER, whose);
    r->network->broken |= rings < 0;
    if (rings <= 0) return;
    timer->due = NP_NEVER;
    if (is_worker)
        turn(r, &r->workers[whose]);
    else
        submit_ready(r, job);
}

static void deliver(struct np_reduction *r, int32_t worker, int32_t packet) {
    const struct np_packet *p = &r->network->packets[packet];
    struct np_worker *w = &r->workers[worker];
    struct wire wire;
    memcpy(&wire, p->wire, sizeof wire);
    int32_t tree = 0;
    while (tree < r->jobs[w->job].tree_count && r->assignments[worker].trees[tree].tree != __builtin_bswap16(wire.tree)) tree++;
    nf_core_receive(w->core, tree, (const uint8_t *)&wire, NP_WIRE_BYTES, p->ecn == NP_CE, seconds(r));
    turn(r, w);
}

/* A sum leaves its node: up as its own child's contribution, or down. */
static void leave(struct np_reduction *r, const struct np_edge *from, enum np_verdict verdict, int32_t packet) {
    const struct np_node *node = &r->nodes[from->parent];
    struct np_packet *p = &r->network->packets[packet];
    struct wire *wire = (struct wire *)p->wire;
    p->ecn = NP_ECT;
    if (!node->root) {
        wire->child = __builtin_bswap16((uint16_t)r->edges[node->up].number);
        p->owner = node->up;
        p->way = r->edges[node->up].way;
    } else {
        wire->version_kind = RESULT;
        if (verdict == NP_RESULT_SENT || node->server) { /* a server's first switch spreads whatever it answers */
            copy_to_arcs(r, packet, node->first, node->count);
            np_packet_free(r->network, packet);
            return;
        }
        p->kind = NP_ANSWER;
        p->way = from->answer;
    }
    if (!go_on(r, packet)) np_packet_free(r->network, packet);
}

static void add_up(struct np_reduction *r, int32_t packet) {
    struct np_packet *p = &r->network->packets[packet];
    struct wire *wire = (struct wire *)p->wire;
    const struct np_edge *edge = &r->edges[p->owner];
    struct np_sum sum;
    int32_t lanes[NP_LANES];
    for (int i = 0; i < NP_LANES; i++) lanes[i] = (int32_t)__builtin_bswap32(wire->lane[i]);
    uint8_t flags = wire->flags | (p->ecn == NP_CE ? NP_CONGESTION : 0);
    struct np_pool *pool = &r->pools[edge->parent];
    pool->area += (double)pool->open * (double)(r->network->now - pool->looked);
    pool->looked = r->network->now;
    enum np_verdict verdict = np_pool_gradient(pool, __builtin_bswap32(wire->tag), __builtin_bswap16(wire->slot),
                                               edge->bit, flags, wire->exponent, lanes, &sum);
    if (!sum.lanes) {
        np_packet_free(r->network, packet);
        return;
    }
    for (int i = 0; i < NP_LANES; i++) wire->lane[i] = __builtin_bswap32((uint32_t)sum.lanes[i]);
    wire->flags = sum.flags;
    wire->exponent = sum.exponent;
    leave(r, edge, verdict, packet);
}

void np_reduction_packet(struct np_reduction *r, int32_t packet) {
    struct np_packet *p = &r->network->packets[packet];
    int32_t worker = NP_NOBODY;
    if (p->kind == NP_DOWN) {
        const struct np_arc *arc = &r->arcs[p->way];
        r->relayed += arc->count;
        copy_to_arcs(r, packet, arc->first, arc->count);
        worker = arc->worker;
    } else if (go_on(r, packet)) {
        return;
    } else if (p->kind == NP_UP) {
        add_up(r, packet);
        return;
    } else {
        worker = r->edges[p->owner].worker;
    }
    if (worker != NP_NOBODY) deliver(r, worker, packet);
    np_packet_free(r->network, packet);
}

static int start_worker(struct np_reduction *r, int64_t i) {
    struct np_worker *w = &r->workers[i];
    size_t buckets = (size_t)r->jobs[w->job].buckets;
    np_timer_clear(&w->timer);
    w->core = nf_core_create();
    w->calls = calloc(buckets, sizeof *w->calls);
    w->arrays = calloc(buckets, sizeof *w->arrays);
    if (!w->core || !w->calls || !w->arrays) return -1;
    return nf_core_assign(w->core, &r->assignments[i], 0);
}

int np_reduction_start(struct np_reduction *r) {
    for (int64_t i = 0; i < r->node_count; i++)
        if (np_pool_start(&r->pools[i], r->nodes[i].slots, NP_LANES, r->nodes[i].children, r->nodes[i].root)) return -1;
    for (int64_t i = 0; i < r->worker_count; i++)
        if (start_worker(r, i)) return -1;
    for (int64_t i = 0; i < r->job_count; i++) {
        np_timer_clear(&r->jobs[i].timer);
        r->jobs[i].began = r->jobs[i].start;
        begin_iteration(r, &r->jobs[i]);
    }
    return r->network->broken ? -1 : 0;
}

void np_reduction_stop(struct np_reduction *r) {
    for (int64_t i = 0; i < r->worker_count; i++) {
        struct np_worker *w = &r->workers[i];
        if (w->core) {
            w->retransmits = nf_core_totals(w->core).retransmits;
            nf_core_destroy(w->core);
        }
        for (int32_t b = 0; w->arrays && b < r->jobs[w->job].buckets; b++) free(w->arrays[b]);
        free(w->arrays);
        free(w->calls);
    }
    for (int64_t i = 0; i < r->node_count; i++) np_pool_free(&r->pools[i]);
}
