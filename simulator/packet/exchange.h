/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that are reduced by their hosts, over connections in lock step: a source sends its next message when it has received
 * the previous one of all connections that end at it, as in a ring. */

#ifndef NETFOLD_EXCHANGE_H
#define NETFOLD_EXCHANGE_H

#include "tcp.h"

struct np_stream {
    int32_t flow, exchange, first_source, sources; /* in `sources`: the streams that end where this one starts */
    double factor;                                 /* its bytes a byte of a bucket */
    uint32_t base, message, released, delivered;     /* segments before the bucket, and of a message; messages */
};

struct np_exchange_bucket {
    np_time ready;
    int64_t bytes;
};

struct np_exchange {
    int32_t first_stream, streams, first_bucket, buckets, iterations, steps, first_time;
    np_time start, compute; /* the compute time is the shortest iteration */
    /* state */
    struct np_timer timer;
    np_time began;
    int32_t iteration, bucket, done, running;
};

struct np_exchanges {
    struct np_network *network;
    struct np_tcp *tcp;
    struct np_exchange *exchanges;
    struct np_stream *streams;
    const struct np_exchange_bucket *exchange_buckets; /* the buckets */
    const int32_t *sources;
    int64_t count, stream_count;
    uint32_t first_timer; /* owner id of the first one's timer */
    double *times;        /* ready and done, by exchange, iteration and bucket */
};

void np_exchanges_start(struct np_exchanges *x);
void np_exchanges_on_timer(struct np_exchanges *x, uint32_t which);
/* Segments of a stream have arrived in order. */
void np_exchanges_on_arrival(void *exchanges, int32_t flow, uint32_t segments);

#endif
