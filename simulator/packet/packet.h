/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A whole network in virtual time: what run.py hands over, and what it gets back. Each table has a row for each thing; its
 * columns are named in packet.c, where they are read. Times are picoseconds, but for `times`, which are seconds. */

#ifndef NETFOLD_PACKET_H
#define NETFOLD_PACKET_H

#include "exchange.h"
#include "reduction.h"
#include "tcp.h"

enum {
    NP_LINE_COLUMNS = 9,
    NP_LINE_RESULTS = 8,
    NP_ARC_COLUMNS = 4,
    NP_EDGE_COLUMNS = 6,
    NP_NODE_COLUMNS = 7,
    NP_NODE_RESULTS = NP_VERDICTS + 2,
    NP_JOB_COLUMNS = 10,
    NP_JOB_RESULTS = 2,
    NP_WORKER_COLUMNS = 4,
    NP_BUCKET_COLUMNS = 3,
    NP_EXCHANGE_COLUMNS = 9,
    NP_STREAM_COLUMNS = 5,
    NP_FLOW_COLUMNS = 6,
    NP_FLOW_RESULTS = 3
};

struct np_setup {
    int64_t lines, hops, arcs, edges, nodes, jobs, workers, worker_edges, buckets, times;
    int64_t exchanges, streams, sources, portions, flows;
    const double *line;
    const int32_t *hop;
    const int64_t *arc, *edge, *node, *job, *worker;
    const int32_t *worker_edge;
    const int64_t *bucket, *exchange;
    const double *stream;
    const int32_t *source;
    const int64_t *portion, *flow;
    const struct nf_assignment *assignment; /* by worker */
    struct np_tcp_settings tcp;
    uint64_t seed;
    int64_t until;
    int64_t sample_every, samples; /* how often, and how many times at most, flows are looked at */
    /* what came of it */
    double *line_result;
    double *node_result;
    int64_t *job_result, *worker_result, *exchange_result, *flow_result;
    double *time;
    int64_t *sample; /* by sample and flow: segments that were acknowledged */
    int64_t events, packets, end, failed;
};

/* Runs until nothing happens any more, or `until`. 0, or -1: no memory. */
int np_run(struct np_setup *s);

#endif
