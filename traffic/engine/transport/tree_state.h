/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The state of one tree in one epoch. Its channels are divided between two streams. The chunks of a stream have places
 * 0, 1, 2 ..., equal at all workers; place j uses the stream's channel j mod its channels. */

#ifndef NETFOLD_TREE_STATE_H
#define NETFOLD_TREE_STATE_H

#include "../congestion/pacer.h"
#include "../congestion/window.h"
#include "assignment.h"
#include "segment.h"

enum { NO_CHANNEL = -1 };

/* A packet to be sent. The memory is the tree's. */
struct nf_out {
    const uint8_t *packet;
    int64_t endpoint;
};

struct stream {
    int64_t from, count; /* its channels */
    int64_t *ready; /* places that may be sent, a min-heap */
    int64_t ready_count;
    struct segment *first, *last;
    int64_t end, limit; /* of the places that have segments, and of those of the epoch */
    int64_t highest; /* one more than the highest place that was ever sent */
    int64_t in_flight;
};

struct channel {
    int64_t next_place; /* the next to send, or the one in flight */
    double sent_at, first_sent_at; /* the last and the first transmission */
    struct segment *segment; /* of the chunk in flight */
    int32_t previous, next; /* in flight, in the order of last transmissions */
    uint8_t is_in_flight, is_retransmitted, seal_requested;
    uint8_t prev_retransmitted; /* the previous chunk was retransmitted for loss, and has one result */
};

/* Results since the window was updated last. */
struct ack_batch {
    int64_t count, marked;
    int64_t unambiguous; /* results with an unambiguous RTT */
    double rtt_sum; /* of these */
    int64_t undelayed; /* results of chunks that were sent once all workers had reached the segment */
    double undelayed_rtt_sum;
    double min_ambiguous_rtt; /* of chunks sent once while this worker retransmitted others; 0: none */
};

/* Results since the last unambiguous RTT. */
struct spurious_check {
    int64_t count;
    int64_t duplicates; /* retransmitted chunks with a second result: the first transmission was not lost */
    double min_rtt; /* since the first transmission; 0: none */
};

struct tree {
    struct nf_tree_spec spec;
    int64_t index, epoch, lanes, packet_bytes;
    int64_t channel_count; /* A/2 */
    struct channel *channels;
    uint8_t *packets; /* of the channels */
    int64_t *ready; /* memory of both streams' heaps */
    struct stream streams[STREAMS];
    int64_t in_flight;
    int32_t oldest, newest; /* channels in flight, by their last transmission */
    double newest_acked_sent_at; /* when the last chunk was sent that has a result: of those that were sent once, */
    double newest_retx_acked_sent_at; /* and of those that were retransmitted, unless the first transmission was acknowledged */
    double last_retx_at;
    double cwnd_reduced_at, probed_at, last_activity_at;
    int64_t quorum, workers, late_contributions;
    double seal_timeout; /* in a job with a quorum: how long a chunk waits for all contributions */
    double seal_due_at; /* no chunk in flight times out for sealing before */
    int slot_reused; /* a chunk of this worker came too late: the sum is no longer available */
    int tail_probed, is_pacing_limited;
    int probe_due; /* the oldest chunk is to be retransmitted now */
    int64_t retransmits, probes, results, marked;
    struct nf_timing timing;
    struct nf_rtt rtt;
    struct nf_window window;
    struct nf_pacer pacer;
    struct ack_batch acks;
    struct spurious_check spurious;
    int64_t accounted; /* `acks.count` at the last tree_update_window */
};

/* A tree with one channel has one stream. */
static inline struct stream *stream_of(struct tree *t, enum stream_id id) {
    return &t->streams[t->channel_count > 1 ? id : MAIN];
}

/* Returns the number of channels of the main stream: as many chunks of a part are sent before the first result of it is
 * needed. */
static inline int64_t rows_ahead(const struct tree *t) { return t->streams[MAIN].count; }

static inline struct header *packet_of(const struct tree *t, int64_t channel) {
    return (struct header *)(t->packets + channel * t->packet_bytes);
}

#endif
