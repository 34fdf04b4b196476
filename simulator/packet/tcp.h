/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Flows of TCP, counted in segments: selective acknowledgment (RFC 2018), losses detected by time and tail loss probes (RACK-TLP,
 * RFC 8985), proportional rate reduction (RFC 6937), timeouts (RFC 6298), delayed acknowledgments, and DCTCP's echo of marks
 * (RFC 8257). */

#ifndef NETFOLD_TCP_H
#define NETFOLD_TCP_H

#include "congestion.h"
#include "links.h"

struct np_tcp_settings {
    int64_t segment_bytes, header_bytes, initial, delayed, handshake; /* `delayed`: segments an acknowledgment */
    np_time delay, min_rto, initial_rto; /* `delay`: of an acknowledgment, at most */
};

enum np_state { NP_IDLE, NP_OPENING, NP_OPEN, NP_RECOVERY, NP_TIMED_OUT, NP_CLOSED };

/* Purpose of a sender's timer. */
enum np_timer_purpose { NP_TIMEOUT, NP_PROBE, NP_REORDERED };

struct np_segment;

struct np_range {
    uint32_t first, end;
};

struct np_flow {
    int32_t forward_path, reverse_path; /* positions in the hops */
    int64_t bytes, segment; /* of the flow, and of a segment; those of a stream are released by message */
    np_time start, end; /* `end`: when the receiver has all; NP_NEVER */
    int32_t transport, stream; /* the stream that it carries, or NP_NONE */
    /* the sender */
    uint32_t total, una, next, recover;
    uint32_t retransmit_from,
        checked_until; /* no segment below the first has to be retransmitted; below the second all are acknowledged or lost */
    uint32_t sacked, lost, retransmitted; /* of the segments from una to next; `retransmitted`: lost and in flight again */
    int64_t oldest_retransmitted, newest_retransmitted; /* of the retransmitted, which are linked */
    struct np_segment *segments; /* by number, modulo (scoreboard.h) */
    uint32_t segment_capacity;
    uint32_t newest_acked; /* of the acknowledged segments, the one that was sent last */
    np_time newest_acked_sent_at, newest_rtt, min_rtt;
    int32_t state, backoff, timer_purpose;
    int32_t probing, probe_is_repeat; /* a tail loss probe is in flight; it is a retransmission */
    uint32_t probe_until;
    np_time probed_at;
    struct np_cwnd cwnd;
    double srtt, rttvar; /* seconds */
    double delivered, out, at_recovery; /* proportional rate reduction */
    struct np_timer timer;
    int64_t timeouts, retransmissions;
    /* the receiver */
    uint32_t expected;
    int32_t unacked, marked; /* `marked`: the last segment had a CE mark */
    struct np_range *ranges; /* beyond `expected`; the one that changed last is first */
    int32_t range_count, range_capacity;
    np_time echo_stamp;
    struct np_timer ack_timer;
};

struct np_tcp {
    struct np_network *network;
    const int32_t *hops;
    const struct np_tcp_settings *settings;
    struct np_flow *flows; /* in the order of their start */
    int64_t flow_count, started;
    /* Called when the segments of a stream up to this one have arrived in order. */
    void (*on_arrival)(void *listener, int32_t flow, uint32_t segments);
    void *listener;
};

int np_tcp_init(struct np_tcp *t);
void np_tcp_free(struct np_tcp *t);

void np_tcp_on_packet(struct np_tcp *t, int32_t packet);
void np_tcp_on_timer(struct np_tcp *t, enum np_event_type what, uint32_t flow);
/* Starts the flows that are due. */
void np_tcp_start_flows(struct np_tcp *t);
/* Allows a stream to send `segments` more, of `bytes` each. */
void np_tcp_release(struct np_tcp *t, int32_t flow, uint32_t segments, int64_t bytes);

#endif
