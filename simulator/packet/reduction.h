/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that are reduced in the network: workers, each driving the very engine of traffic/engine in virtual time, and the
 * trees between them. */

#ifndef NETFOLD_REDUCTION_H
#define NETFOLD_REDUCTION_H

#include "../../traffic/engine/core.h"
#include "lines.h"
#include "slots.h"

enum { NP_END = -1 };

/* Hops are numbers of lines; NP_END ends a way. In the way of an answer, `-2 - arc` is where it joins the way down. */

/* A link of a tree's way down, and what follows it. */
struct np_arc {
    int32_t line, first, count, worker; /* the arcs behind it; the worker at its end, or NP_NOBODY */
};

/* A child of a tree, and its way to its parent. */
struct np_edge {
    int32_t number, worker, way, parent, bit, answer; /* `number` in the tree; `worker`: NP_NOBODY for an inner node */
};

/* A node that adds up. */
struct np_node {
    int32_t slots, children, root, server, up, first, count; /* `up`: its edge; `first`, `count`: arcs of a root */
};

struct np_bucket {
    np_time ready; /* after the iteration's start */
    int64_t chunks;
    np_time local; /* the least time of its reduction, inside the machines */
};

struct np_job {
    int32_t first_worker, workers, first_bucket, buckets, iterations, tree_count;
    int32_t packet_bytes, first_time; /* `first_time`: where its times go, two for each bucket of each iteration */
    np_time start, compute; /* an iteration takes the latter at least */
    /* what happens */
    struct np_timer timer;
    np_time began;
    int32_t iteration, submitted, reduced, wrong;
};

struct np_worker {
    int32_t job, rank, first_edge; /* in worker_edges, one for each tree of its job */
    int32_t open, submitted;       /* the first bucket that is not reduced here; how many this worker has asked for */
    np_time late;                  /* it comes so long after each iteration's begin */
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
    struct np_pool *pools; /* by node */
    const struct np_bucket *buckets;
    const struct nf_assignment *assignments; /* by worker */
    struct np_job *jobs;
    struct np_worker *workers;
    int64_t node_count, job_count, worker_count;
    int32_t *waiting_for; /* by bucket: workers that lack its sum in this iteration */
    double *times;        /* ready and done, by job, iteration and bucket */
    int64_t relayed;
    int failed; /* enum nf_status of a call that failed */
};

/* -1: no memory. */
int np_reduction_start(struct np_reduction *r);
void np_reduction_stop(struct np_reduction *r);

/* A packet of a tree at the end of a line. */
void np_reduction_packet(struct np_reduction *r, int32_t packet);
/* A worker's timer (whose < worker_count) or a job's (worker_count + job). */
void np_reduction_timer(struct np_reduction *r, uint32_t whose);

#endif
