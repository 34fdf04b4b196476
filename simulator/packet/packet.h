/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A network in virtual time: the tables of native.py, and the results. The columns of each table are named in packet.c, where
 * they are read. Times are picoseconds, except for `times`: seconds. */

#ifndef NETFOLD_PACKET_H
#define NETFOLD_PACKET_H

#include "exchange.h"
#include "reduction.h"
#include "tcp.h"

#define NP_API __attribute__((visibility("default"))) /* exported; all else is hidden */

enum {
    NP_LINK_COLUMNS = 9,
    NP_LINK_RESULTS = 8,
    NP_ARC_COLUMNS = 6,
    NP_EDGE_COLUMNS = 7,
    NP_NODE_COLUMNS = 8,
    NP_NODE_RESULTS = NF_VERDICTS + 2,
    NP_JOB_COLUMNS = 10,
    NP_JOB_RESULTS = 2,
    NP_WORKER_COLUMNS = 4,
    NP_BUCKET_COLUMNS = 4,
    NP_EXCHANGE_COLUMNS = 9,
    NP_STREAM_COLUMNS = 5,
    NP_FLOW_COLUMNS = 6,
    NP_FLOW_RESULTS = 3
};

struct np_setup {
    int64_t links, hops, arcs, edges, nodes, jobs, workers, worker_edges, buckets, times;
    int64_t exchanges, streams, sources, exchange_buckets, flows;
    const double *link;
    const int32_t *hop;
    const int64_t *arc, *edge, *node, *job, *worker;
    const int32_t *worker_edge;
    const int64_t *bucket, *exchange;
    const double *stream;
    const int32_t *source;
    const int64_t *exchange_bucket, *flow;
    const struct nf_assignment *assignment; /* by worker */
    struct np_tcp_settings tcp;
    uint64_t seed;
    int64_t until;
    int64_t sample_every, samples; /* interval and number of samples of the flows */
    /* results */
    double *link_result;
    double *node_result;
    int64_t *job_result, *worker_result, *exchange_result, *flow_result;
    double *time;
    int64_t *sample; /* by sample and flow: acknowledged segments */
    int64_t events, packets, end, failed;
};

/* Runs until there is no event, or `until`. Returns 0, or -1 if there is no memory. */
NP_API int np_run(struct np_setup *s);

#endif
