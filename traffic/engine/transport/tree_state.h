/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The state of one tree in one epoch. Its channels are divided between streams. The chunks of a stream have places
 * 0, 1, 2 ..., equal at all workers; place j uses the stream's channel j mod its channels. */

#ifndef NETFOLD_TREE_STATE_H
#define NETFOLD_TREE_STATE_H

#include "../congestion/pacer.h"
#include "../congestion/window.h"
#include "assignment.h"
#include "../wire/target.h"
#include "segment.h"

enum { NO_CHANNEL = -1 };

/* A packet to be sent. The memory is the tree's. */
struct nf_out {
    const uint8_t *packet;
    int64_t endpoint, length;
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

/* Chunks in flight that overtake each other. Those of gathers are apart from all others: they wait for other packets, so that
 * one overtakes the other without a loss. */
struct flight {
    int32_t oldest, newest; /* channels, by their last transmission */
    double newest_acked_sent_at; /* when the last chunk was sent that has a result: of those that were sent once, */
    double newest_retx_acked_sent_at; /* and of those that were retransmitted, unless the first transmission was acknowledged */
};

enum { FLIGHTS = 2 };

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
    int64_t index, epoch, rank, lanes, packet_bytes;
    double short_cost; /* tokens of a packet without lanes */
    int64_t channel_count; /* A/2 */
    struct channel *channels;
    uint8_t *packets; /* of the channels */
    int64_t *ready; /* memory of all streams' heaps */
    struct stream streams[STREAMS];
    int64_t in_flight;
    struct flight flights[FLIGHTS];
    double last_retx_at;
    double cwnd_reduced_at, probed_at, last_activity_at;
    int64_t quorum, workers, late_contributions;
    double seal_timeout; /* in a job with a quorum: how long a chunk waits for all contributions */
    double seal_due_at; /* no chunk in flight times out for sealing before */
    int slot_reused; /* a chunk of this worker came too late: the sum is no longer available */
    int tail_probed, is_pacing_limited;
    int probe_due; /* the oldest chunk is to be retransmitted now */
    int64_t retransmits, results, marked;
    int64_t probes; /* retransmissions after silence, not of a chunk that others have overtaken */
    struct nf_timing timing;
    struct nf_rtt rtt;
    struct nf_window window;
    struct nf_pacer pacer;
    struct ack_batch acks;
    struct spurious_check spurious;
    int64_t accounted; /* `acks.count` at the last tree_update_window */
};

/* A tree with one channel has one stream, and one with few channels has none for gathers. */
static inline enum stream_id stream_index(const struct tree *t, enum stream_id id) { return t->streams[id].count ? id : MAIN; }

static inline struct stream *stream_of(struct tree *t, enum stream_id id) { return &t->streams[stream_index(t, id)]; }

static inline struct flight *flight_of(struct tree *t, int64_t channel) {
    return &t->flights[channel >= t->streams[GATHER].from];
}

/* Returns the number of channels of the main stream: as many chunks of a part are sent before the first result of it is
 * needed. */
static inline int64_t rows_ahead(const struct tree *t) { return t->streams[MAIN].count; }

static inline struct header *packet_of(const struct tree *t, int64_t channel) {
    return (struct header *)(t->packets + channel * t->packet_bytes);
}

/* Returns what this worker sent of a chunk whose result is taken now. */
static inline struct header *own_packet(const struct tree *t, const struct segment *s, int64_t chunk) {
    const struct stream *r = &t->streams[stream_index(t, s->ops->stream)];
    return packet_of(t, r->from + (s->base + chunk) % r->count);
}

#endif
