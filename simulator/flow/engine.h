/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The flow level: events of flows and jobs in time, rates between them by shares.h. Sizes in bytes of payload, times in
 * seconds. Python lays all memory out (engine.py) and reads the results from it; what is named "out" is written here. */
#ifndef NF_ENGINE_H
#define NF_ENGINE_H

#include <stdint.h>

enum nf_kind { NF_RELIEVED, NF_FILLING, NF_WINDOW, NF_STEPS };
/* What a flow does to the queue where it is held up: keeps it at the marking threshold (DCTCP, PANAMA), fills it (Reno,
 * CUBIC), holds what of its window the way does not, or nothing. */

struct nf_network {
    int64_t links;
    const double *capacity;  /* payload bytes/s */
    const double *queue;     /* payload bytes that wait at most */
    double marking;          /* payload bytes */
    double segment;          /* payload bytes of a packet */
    double first_window;     /* payload bytes */
    double tolerance;        /* relative error of rates that is left as it is */
    int64_t handshake;
    double *sent, *queue_mean, *queue_max; /* out */
};

struct nf_streams { /* flows, by start, then the channels of jobs; rows of links in the order of both */
    int64_t flows, channels;
    const int64_t *rows; /* flows + channels + 1 */
    const int32_t *links;
    const double *coefs;
    const double *weight, *cap;
    const uint8_t *kind;
    const double *window; /* payload bytes, of NF_WINDOW */
    const double *delay;  /* one way, through empty queues, with the time to send a packet at each hop */
    const double *start, *bytes; /* of flows */
    double *completion;          /* out: seconds, NaN if not over; of flows */
    double *carried, *busy, *fastest; /* out: bytes, seconds, bytes/s; of channels */
};

struct nf_jobs {
    int64_t jobs;
    const int64_t *channels, *buckets; /* jobs + 1 each: where each one's begin */
    const double *share;               /* of each channel */
    const double *bytes, *ready;       /* of each bucket: size; seconds after the iteration's start */
    const double *compute, *latency, *local, *start; /* latency: of each bucket; local: seconds for each byte */
    const int64_t *iterations;
    const int64_t *first_iteration, *first_reduced; /* where each one's results begin */
    double *began, *ended;                          /* out, of iterations; NaN if not over */
    double *was_ready, *was_reduced;                /* out, of buckets of iterations */
};

/* Until all is done or `until` is reached: the time and the number of events. 0, or -1 without memory. */
int nf_flow_run(const struct nf_network *network, const struct nf_streams *streams, const struct nf_jobs *jobs,
                double until, double *end, int64_t *events);

/* Rates alone, rows as above: flows come one by one, then the first `leaving` leave one by one. */
int nf_flow_rates(int64_t links, const double *capacity, int64_t flows, const int64_t *rows, const int32_t *row_links,
                  const double *coefs, const double *weight, const double *cap, int64_t leaving, double *rate,
                  int32_t *bottleneck);

#endif
