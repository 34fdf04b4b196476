/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The congestion window of a tree, in chunks. One result acknowledges one chunk of every worker, so the windows of a job move
 * together. The algorithms are in panama.c and atp.c; a fixed window never changes. */

#ifndef NETFOLD_WINDOW_H
#define NETFOLD_WINDOW_H

#include <stdint.h>

#include "../wire/export.h"
#include "rtt.h"

enum nf_congestion { NF_FIXED, NF_ATP, NF_PANAMA };

struct nf_window {
    enum nf_congestion algorithm;
    int64_t max_cwnd;
    double cwnd, alpha;
    double delay_threshold; /* nf_timing */
    double increase;        /* of cwnd in a window without congestion */
    int64_t acked, marked;  /* results of this window, and those with an ECN mark */
    double min_delay;       /* smallest queueing delay of this window; NF_UNKNOWN */
    double min_rtt;         /* smallest ever; peak_rtt: largest in the last marked windows, trough_rtt: smallest since */
    double peak_rtt, trough_rtt;
    double peer_backoff;  /* part by which RTTs fell after the last marks */
    double marking_delay; /* smallest delay at which all results were marked */
    int64_t deep_windows; /* in a row, all of whose results met a deep queue */
    double cwnd_before_deep, contended_cwnd; /* cwnd before these; cwnd when it contended last, decaying */
    int64_t contending_windows; /* left in which it contends with senders that fill the queue */
    int in_slow_start, saw_marks, was_marked; /* `was_marked`: in the last window */
};

/* Results received since the last account. */
struct nf_ack_summary {
    int64_t count, marked; /* `marked`: with an ECN mark */
    double delay;   /* mean RTT above the smallest, of chunks that no worker was late for; NF_UNKNOWN: none */
    double min_rtt; /* smallest ever */
};

/* Increase of cwnd a window, in chunks: trees that share a link grow together as one TCP connection does. */
NF_API double nf_window_increase(double wire_bytes, double share);

NF_API void nf_window_init(struct nf_window *w, enum nf_congestion algorithm, int64_t max_cwnd, double delay_threshold,
                           double increase);
NF_API int64_t nf_window_cwnd(const struct nf_window *w);
NF_API void nf_window_on_acks(struct nf_window *w, const struct nf_ack_summary *acks);

/* A chunk was lost. Called at most once an RTT. */
NF_API void nf_window_on_loss(struct nf_window *w);

/* For the algorithms. */
static inline void window_reset_counts(struct nf_window *w) {
    w->acked = w->marked = 0;
    w->min_delay = NF_UNKNOWN;
}

static inline void window_grow(struct nf_window *w, double by) {
    w->cwnd = w->cwnd + by < (double)w->max_cwnd ? w->cwnd + by : (double)w->max_cwnd;
}

#endif
