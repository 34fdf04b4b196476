/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The flow level's interface: events of flows and jobs in time, with max-min rates between two events. Sizes are bytes of
 * payload, times seconds. The caller (native.py) allocates all arrays; those marked "out" are written here. */
#ifndef SF_FLOW_H
#define SF_FLOW_H

#include <stdint.h>

#define SF_API __attribute__((visibility("default")))

/* The effect of a stream on the queue of its bottleneck link. */
enum sf_flow_type {
    SF_ECN,          /* keeps it at the marking threshold (DCTCP, PANAMA) */
    SF_LOSS_BASED,   /* fills it (Reno, CUBIC) */
    SF_FIXED_WINDOW, /* leaves there what of its window is not in flight on the links */
    SF_NO_QUEUE,     /* nothing */
};

struct sf_network {
    int64_t links;
    const double *capacity; /* payload bytes/s */
    const double *queue;    /* payload bytes that wait at most */
    double marking;         /* marking threshold, payload bytes */
    double segment;         /* payload bytes of a packet */
    double first_window;    /* TCP's initial window, payload bytes */
    double tolerance;       /* relative error of rates that is not corrected */
    int64_t handshake;      /* 1: a flow's completion time includes TCP's opening round trip */
    double *sent, *queue_mean, *queue_max; /* out */
};

/* The flows come in the order of their starts, then the jobs' channels; each has a row of links. */
struct sf_streams {
    int64_t flows, channels;
    const int64_t *rows; /* flows + channels + 1: where each row begins */
    const int32_t *links;
    const double *coefs;
    const double *weight, *cap;
    const uint8_t *type;              /* enum sf_flow_type */
    const double *window;             /* payload bytes, of SF_FIXED_WINDOW */
    const double *delay;              /* one way, through empty queues, with the time to send a packet at each hop */
    const double *start, *bytes;      /* of flows */
    double *completion;               /* out, of flows: seconds; NaN: not complete */
    double *carried, *busy, *fastest; /* out, of channels: bytes, seconds, highest rate in bytes/s */
};

struct sf_jobs {
    int64_t jobs;
    const int64_t *channels, *buckets; /* jobs + 1 each: where each job's begin */
    const double *share;               /* of each channel */
    const double *bytes, *ready;       /* of each bucket: size; seconds after the iteration's start */
    const double *compute, *latency, *local, *start; /* latency: of each bucket; local: seconds per byte */
    const int64_t *iterations;
    const int64_t *first_iteration, *first_reduced; /* where each job's results begin */
    double *began, *ended;                          /* out, of iterations; NaN: not ended */
    double *was_ready, *was_reduced;                /* out, of the buckets of each iteration */
};

/* Runs until all flows and jobs are complete or until the time `until`. Sets the end time and the number of events.
 * Returns 0, or -1 if memory is exhausted. */
SF_API int sf_flow_run(const struct sf_network *network, const struct sf_streams *streams, const struct sf_jobs *jobs,
                       double until, double *end, int64_t *events);

/* Solves rates alone, with rows as above: flows are added one by one, then the first `leaving` are removed one by one. */
SF_API int sf_flow_rates(int64_t links, const double *capacity, int64_t flows, const int64_t *rows, const int32_t *row_links,
                         const double *coefs, const double *weight, const double *cap, int64_t leaving, double *rate,
                         int32_t *bottleneck);

#endif
