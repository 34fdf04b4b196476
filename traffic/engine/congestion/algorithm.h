/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A congestion control algorithm has three operations on a state of its own, which begins with struct nf_cwnd. */

#ifndef NETFOLD_ALGORITHM_H
#define NETFOLD_ALGORITHM_H

#include <stdint.h>

#include "rtt.h"

/* The congestion window in chunks, and its upper limit. */
struct nf_cwnd {
    double size;
    int64_t max;
};

/* Results received since the last account. */
struct nf_ack_summary {
    int64_t count, marked; /* `marked`: with an ECN mark */
    double delay; /* mean RTT above the smallest, of chunks that no worker was late for; NF_UNKNOWN: there are none */
    double min_rtt; /* smallest RTT of the epoch */
};

/* The properties of a tree that an algorithm may use. */
struct nf_window_settings {
    int64_t max_cwnd;
    double delay_threshold; /* of nf_timing */
    double increase; /* of the window in an RTT without congestion */
};

struct nf_congestion_ops {
    void (*init)(void *state, const struct nf_window_settings *settings);
    void (*on_acks)(void *state, const struct nf_ack_summary *acks);
    void (*on_loss)(void *state); /* a chunk was lost; called at most once an RTT */
};

static inline struct nf_cwnd cwnd_of(int64_t initial, int64_t max) {
    return (struct nf_cwnd){(double)(initial < max ? initial : max), max};
}

static inline void cwnd_grow(struct nf_cwnd *c, double by) {
    c->size = c->size + by < (double)c->max ? c->size + by : (double)c->max;
}

#endif
