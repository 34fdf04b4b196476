/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "reduction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../traffic/engine/wire/target.h"

enum { BATCH = 64, MIN_WAIT_PS = 1000 };

#define PS_PER_SECOND 1e12

_Static_assert(NP_WIRE_BYTES == NF_HEADER_BYTES + 4 * NP_LANES, "the packet of section 2");

static double seconds(const struct np_reduction *r) { return (double)r->network->now / PS_PER_SECOND; }

/* Returns the input of worker `rank` at element i: small integers, so that sums are exact. */
static float element(int64_t i, int64_t rank) { return (float)((i * 7919 >> 3 & 127) * (rank + 1)); }

static float sum_of(int64_t i, int64_t workers) { return (float)((i * 7919 >> 3 & 127) * (workers * (workers + 1) / 2)); }

static const struct np_job *job_of(const struct np_reduction *r, const struct np_packet *p) {
    return &r->jobs[r->nodes[r->edges[p->owner].parent].job];
}

/* A job's trees are numbered from 1. */
static int32_t tree_of(const struct np_packet *p) { return __builtin_bswap16(((const struct header *)p->wire)->tree) - 1; }

/* Returns whether a switch cuts the lanes of a result for an arc (N19). */
static int is_cut(const struct np_reduction *r, const struct np_packet *p, int32_t arc) {
    const struct header *h = (const struct header *)p->wire;
    if (!is_targeted(h)) return 0;
    const struct np_job *job = job_of(r, p);
    if (target_owner(h) >= job->workers) return 0;
    const struct np_worker *owner = &r->workers[job->first_worker + target_owner(h)];
    int32_t at = r->edges[r->worker_edges[owner->first_edge + tree_of(p)]].arc;
    while (at != NP_NONE && at != arc) at = r->arcs[at].above;
    return target_wants(h, owner->rank) ? at != arc : at == arc && r->arcs[arc].reached == 1;
}

static void multicast_copies(struct np_reduction *r, int32_t from, int32_t first, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        int32_t copy = np_packet_new(r->network);
        if (copy == NP_NONE) return;
        struct np_packet *p = &r->network->packets[copy];
        *p = r->network->packets[from];
        p->kind = NP_DOWN;
        p->path = first + i;
        if (is_cut(r, p, first + i)) p->bytes = (uint16_t)job_of(r, p)->short_bytes;
        np_link_send(r->network, r->arcs[first + i].link, copy);
    }
}

/* Sends the packet over the next hop of its path. Returns false at the end of the path. */
static int forward(struct np_reduction *r, int32_t packet) {
    struct np_packet *p = &r->network->packets[packet];
    int32_t hop = r->hops[p->path];
    if (hop == NP_END) return 0;
    if (hop < NP_END) { /* joins the result tree */
        p->kind = NP_DOWN;
        p->path = -2 - hop;
        hop = r->arcs[p->path].link;
    } else {
        p->path++;
    }
    np_link_send(r->network, hop, packet);
    return 1;
}

static void send_chunks(struct np_reduction *r, struct np_worker *w) {
    struct nf_out out[BATCH];
    const int32_t *edges = r->worker_edges + w->first_edge;
    const struct np_job *job = &r->jobs[w->job];
    int64_t count;
    do {
        count = nf_core_send(w->core, out, BATCH, seconds(r));
        for (int64_t i = 0; i < count; i++) {
            int32_t packet = np_packet_new(r->network);
            if (packet == NP_NONE) return;
            int32_t edge = edges[out[i].endpoint];
            struct np_packet *p = &r->network->packets[packet];
            *p = (struct np_packet){.path = r->edges[edge].path, .owner = edge, .kind = NP_UP, .ecn = NP_ECT};
            p->bytes = (uint16_t)(out[i].length == NF_HEADER_BYTES ? job->short_bytes : job->packet_bytes);
            memcpy(p->wire, out[i].packet, (size_t)out[i].length);
            if (!forward(r, packet)) np_packet_free(r->network, packet);
        }
    } while (count == BATCH);
}

/* ---- calls ---- */

static int is_gather(const struct np_bucket *b) { return b->kind == NF_ALL_GATHER || b->kind == NF_BROADCAST; }

/* Returns the number of blocks; 0: all workers get all of the sum. */
static int64_t block_count(const struct np_job *job, const struct np_bucket *b) {
    if (b->kind == NF_ALL_REDUCE) return 0;
    return b->kind == NF_BROADCAST || b->kind == NF_REDUCE ? 1 : job->workers;
}

/* Returns how many elements are not what the call gives a worker. Of a scatter it gets its own block. */
static int64_t count_wrong(const struct np_job *job, const struct np_bucket *b, const struct np_worker *w, const float *array) {
    int64_t elements = b->chunks * NP_LANES, blocks = block_count(job, b), wrong = 0;
    float tolerance = 0x1p-20f * (float)(128 * job->workers * job->workers);
    for (int64_t i = 0; i < elements; i++) {
        int64_t owner = blocks ? i / (elements / blocks) : w->rank;
        if (!is_gather(b) && owner != w->rank) continue;
        wrong += fabsf(array[i] - (is_gather(b) ? element(i, owner) : sum_of(i, job->workers))) > tolerance;
    }
    return wrong;
}

static void end_iteration(struct np_reduction *r, struct np_job *job);

static void bucket_reduced(struct np_reduction *r, struct np_worker *w, int32_t b) {
    struct np_job *job = &r->jobs[w->job];
    const struct np_bucket *bucket = &r->buckets[job->first_bucket + b];
    job->wrong += (int32_t)count_wrong(job, bucket, w, w->arrays[b]);
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

static void check_calls(struct np_reduction *r, struct np_worker *w) {
    for (int32_t b = w->open; b < w->submitted; b++) {
        if (!w->calls[b]) continue;
        int64_t status = nf_core_outcome(w->calls[b])->status;
        if (status == NF_PENDING) break; /* calls end in order */
        if (status != NF_DONE) {
            r->failed = (int)status;
            return;
        }
        w->open = b + 1;
        bucket_reduced(r, w, b);
    }
}

static void submit(struct np_reduction *r, struct np_worker *w, int32_t b);

/* Submits the ready buckets once the worker has started this iteration. */
static void submit_all(struct np_reduction *r, struct np_worker *w) {
    const struct np_job *job = &r->jobs[w->job];
    if (r->network->now < job->began + w->late) return;
    while (w->submitted < job->submitted && !r->network->out_of_memory) submit(r, w, w->submitted++);
}

/* Advances a worker after a packet or a timer. */
static void advance_worker(struct np_reduction *r, struct np_worker *w) {
    submit_all(r, w);
    nf_core_process(w->core, seconds(r));
    check_calls(r, w);
    send_chunks(r, w);
    double next = nf_core_next_deadline(w->core, seconds(r));
    np_time joins_at = r->jobs[w->job].began + w->late;
    np_time due = joins_at > r->network->now ? joins_at : NP_NEVER, earliest = r->network->now + MIN_WAIT_PS;
    if (next < NF_UNKNOWN) {
        np_time due_at = (np_time)(next * PS_PER_SECOND) + 1;
        if (due_at < earliest) due_at = earliest;
        if (due_at < due) due = due_at;
    }
    r->network->out_of_memory |= np_timer_set(&r->network->events, &w->timer, due, NP_WORKER, (uint32_t)(w - r->workers)) < 0;
}

static void submit(struct np_reduction *r, struct np_worker *w, int32_t b) {
    const struct np_job *job = &r->jobs[w->job];
    const struct np_bucket *bucket = &r->buckets[job->first_bucket + b];
    int64_t elements = bucket->chunks * NP_LANES, count = block_count(job, bucket);
    float *array = w->arrays[b] = malloc((size_t)elements * sizeof *array);
    struct nf_block *blocks = calloc((size_t)count + 1, sizeof *blocks);
    if (array && blocks) {
        for (int64_t i = 0; i < elements; i++) array[i] = element(i, w->rank);
        for (int64_t i = 0; i < count; i++) blocks[i] = (struct nf_block){elements / count, i};
        struct nf_request request = {.array = array,
                                     .elements = elements,
                                     .dtype = is_gather(bucket) ? NF_INT32 : NF_FLOAT32, /* bits of floats are gathered */
                                     .op = NF_SUM,
                                     .scheme = NF_BLOCK_FLOAT,
                                     .form = !count              ? NF_TO_ALL
                                             : is_gather(bucket) ? NF_GATHER
                                                                 : NF_SCATTER,
                                     .block_count = count,
                                     .blocks = count ? blocks : NULL,
                                     .kind = bucket->kind,
                                     .deadline = NF_UNKNOWN};
        w->calls[b] = nf_core_submit(w->core, &request);
    }
    free(blocks);
    if (!w->calls[b]) r->network->out_of_memory = 1;
}

static void set_job_timer(struct np_reduction *r, struct np_job *job, np_time due) {
    uint32_t owner_id = (uint32_t)(r->worker_count + (job - r->jobs));
    r->network->out_of_memory |= np_timer_set(&r->network->events, &job->timer, due, NP_WORKER, owner_id) < 0;
}

static void start_iteration(struct np_reduction *r, struct np_job *job) {
    job->submitted = job->reduced = 0;
    for (int32_t i = 0; i < job->workers; i++)
        r->workers[job->first_worker + i].open = r->workers[job->first_worker + i].submitted = 0;
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
    start_iteration(r, job);
}

/* Submits the ready buckets at all workers. */
static void submit_ready(struct np_reduction *r, struct np_job *job) {
    np_time since = r->network->now - job->began;
    const struct np_bucket *buckets = r->buckets + job->first_bucket;
    int32_t first = job->submitted;
    double *times = r->times + 2 * (job->first_time + job->iteration * job->buckets);
    for (; job->submitted < job->buckets && buckets[job->submitted].ready <= since; job->submitted++)
        times[2 * job->submitted] = seconds(r);
    if (r->network->out_of_memory || job->submitted == first) return;
    if (job->submitted < job->buckets) set_job_timer(r, job, job->began + buckets[job->submitted].ready);
    for (int32_t i = 0; i < job->workers; i++) advance_worker(r, &r->workers[job->first_worker + i]);
}

void np_reduction_on_timer(struct np_reduction *r, uint32_t owner_id) {
    struct np_events *events = &r->network->events;
    int is_worker = owner_id < r->worker_count;
    struct np_job *job = is_worker ? NULL : &r->jobs[owner_id - r->worker_count];
    struct np_timer *timer = is_worker ? &r->workers[owner_id].timer : &job->timer;
    int fires = np_timer_fires(events, timer, r->network->now, NP_WORKER, owner_id);
    r->network->out_of_memory |= fires < 0;
    if (fires <= 0) return;
    timer->due = NP_NEVER;
    if (is_worker)
        advance_worker(r, &r->workers[owner_id]);
    else
        submit_ready(r, job);
}

static void deliver(struct np_reduction *r, int32_t worker, int32_t packet) {
    const struct np_packet *p = &r->network->packets[packet];
    struct np_worker *w = &r->workers[worker];
    uint8_t wire[NP_WIRE_BYTES] __attribute__((aligned(8)));
    memcpy(wire, p->wire, sizeof wire);
    int64_t length = p->bytes == r->jobs[w->job].short_bytes ? NF_HEADER_BYTES : NP_WIRE_BYTES;
    nf_core_receive(w->core, tree_of(p), wire, length, p->ecn == NP_CE, seconds(r));
    advance_worker(r, w);
}

/* Sends a sum from its node: up as a contribution to the parent, or down as a result. */
static void send_sum(struct np_reduction *r, const struct np_edge *from, enum nf_verdict verdict, int32_t packet) {
    const struct np_node *node = &r->nodes[from->parent];
    struct np_packet *p = &r->network->packets[packet];
    struct header *h = (struct header *)p->wire;
    p->ecn = NP_ECT;
    p->bytes = (uint16_t)(is_short(h) ? job_of(r, p)->short_bytes : job_of(r, p)->packet_bytes);
    if (!node->root) {
        h->child = __builtin_bswap16((uint16_t)r->edges[node->up].number);
        p->owner = node->up;
        p->path = r->edges[node->up].path;
    } else {
        if (verdict == NF_RESULT_SENT || node->server) { /* the first switch of a server multicasts all its results */
            multicast_copies(r, packet, node->first, node->count);
            np_packet_free(r->network, packet);
            return;
        }
        p->kind = NP_RESEND;
        p->path = from->resend_path;
    }
    if (!forward(r, packet)) np_packet_free(r->network, packet);
}

static void accumulate(struct np_reduction *r, int32_t packet) {
    struct np_packet *p = &r->network->packets[packet];
    const struct np_edge *edge = &r->edges[p->owner];
    struct header *h = (struct header *)p->wire;
    enum nf_verdict verdict =
        np_node_slots_accumulate(&r->node_slots[edge->parent], edge->bit, h, p->ecn == NP_CE, h, r->network->now);
    if (verdict >= NF_RESULT_SENT && verdict <= NF_SUM_RESENT)
        send_sum(r, edge, verdict, packet);
    else
        np_packet_free(r->network, packet);
}

void np_reduction_on_packet(struct np_reduction *r, int32_t packet) {
    struct np_packet *p = &r->network->packets[packet];
    int32_t worker = NP_NONE;
    if (p->kind == NP_DOWN) {
        const struct np_arc *arc = &r->arcs[p->path];
        r->multicast += arc->count;
        multicast_copies(r, packet, arc->first, arc->count);
        worker = arc->worker;
    } else if (forward(r, packet)) {
        return;
    } else if (p->kind == NP_UP) {
        accumulate(r, packet);
        return;
    } else {
        worker = r->edges[p->owner].worker;
    }
    if (worker != NP_NONE) deliver(r, worker, packet);
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

int np_reduction_init(struct np_reduction *r) {
    for (int64_t i = 0; i < r->node_count; i++) {
        const struct np_node *node = &r->nodes[i];
        enum nf_role role = node->root ? NF_ROOT : NF_INNER_NODE;
        if (np_node_slots_init(&r->node_slots[i], role, node->slots, NP_LANES, node->children)) return -1;
    }
    for (int64_t i = 0; i < r->worker_count; i++)
        if (start_worker(r, i)) return -1;
    for (int64_t i = 0; i < r->job_count; i++) {
        np_timer_clear(&r->jobs[i].timer);
        r->jobs[i].began = r->jobs[i].start;
        start_iteration(r, &r->jobs[i]);
    }
    return r->network->out_of_memory ? -1 : 0;
}

void np_reduction_free(struct np_reduction *r) {
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
    for (int64_t i = 0; i < r->node_count; i++) np_node_slots_free(&r->node_slots[i]);
}
