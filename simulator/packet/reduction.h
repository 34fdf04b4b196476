/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that are reduced in the network: the engine of each worker (traffic/engine, without I/O) in virtual time, and the trees
 * between them. */

#ifndef NETFOLD_REDUCTION_H
#define NETFOLD_REDUCTION_H

#include "../../traffic/engine/session/core.h"
#include "links.h"
#include "node_slots.h"

enum { NP_END = -1 };

/* Hops are numbers of links; NP_END ends a path. In the path of a resent result, `-2 - arc` is where it joins the result tree. */

/* A link of a result tree, and the links that follow it. */
struct np_arc {
    int32_t link, first, count, worker; /* the following arcs; the worker at its end, or NP_NONE */
    int32_t above, reached;             /* the arc that it follows, or NP_NONE; the number of workers that it leads to */
};

/* A child of a tree, and its path to its parent. */
struct np_edge {
    int32_t number, worker, path, parent, bit, resend_path; /* `number` in the tree; `worker`: NP_NONE for an inner node */
    int32_t arc;                                            /* the one that ends at the worker, or NP_NONE */
};

/* A node that aggregates. */
struct np_node {
    int32_t slots, children, root, server, up, first, count; /* `up`: its edge; `first`, `count`: arcs of a root */
    int32_t job;
};

struct np_bucket {
    np_time ready; /* after the start of the iteration */
    int64_t chunks;
    np_time local; /* shortest time of its reduction, inside the hosts */
    int64_t kind;  /* enum nf_kind; its blocks are equal, one of each worker, or one of worker 0 */
};

struct np_job {
    int32_t first_worker, workers, first_bucket, buckets, iterations;
    int32_t packet_bytes, short_bytes; /* of a packet with lanes, and of one without */
    int32_t first_time;                /* index of its times, two a bucket and iteration */
    np_time start, compute; /* the compute time is the shortest iteration */
    /* state */
    struct np_timer timer;
    np_time began;
    int32_t iteration, submitted, reduced, wrong;
};

struct np_worker {
    int32_t job, rank, first_edge; /* in worker_edges, one a tree of its job */
    int32_t open, submitted;       /* the first bucket without a result; number of submitted buckets */
    np_time late;                  /* how late it starts each iteration */
    struct nf_core *core;
    struct np_timer timer;
    struct nf_call **calls; /* by bucket */
    float **arrays;
    int64_t retransmits;
};

struct np_reduction {
    struct np_network *network;
    const int32_t *hops, *worker_edges;
    const struct np_arc *arcs;
    const struct np_edge *edges;
    const struct np_node *nodes;
    struct np_node_slots *node_slots; /* by node */
    const struct np_bucket *buckets;
    const struct nf_assignment *assignments; /* by worker */
    struct np_job *jobs;
    struct np_worker *workers;
    int64_t node_count, job_count, worker_count;
    int32_t *waiting_for; /* by bucket: workers without its sum in this iteration */
    double *times;        /* ready and done, by job, iteration and bucket */
    int64_t multicast;
    int failed; /* enum nf_status of a call that failed */
};

/* Returns -1 if there is no memory. */
int np_reduction_init(struct np_reduction *r);
void np_reduction_free(struct np_reduction *r);

/* Handles a packet of a tree at the end of a link. */
void np_reduction_on_packet(struct np_reduction *r, int32_t packet);
/* Handles a worker's timer (owner_id < worker_count) or a job's (worker_count + job). */
void np_reduction_on_timer(struct np_reduction *r, uint32_t owner_id);

#endif
