/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Flows of TCP, counted in segments: selective acknowledgment (RFC 2018), losses told by time and tail loss probes (RACK-TLP,
 * RFC 8985), proportional rate reduction (RFC 6937), timeouts (RFC 6298), delayed acknowledgments, and DCTCP's echo of marks
 * (RFC 8257). */

#ifndef NETFOLD_TCP_H
#define NETFOLD_TCP_H

#include "congestion.h"
#include "lines.h"

struct np_tcp_settings {
    int64_t segment_bytes, header_bytes, initial, delayed, handshake; /* `delayed`: segments for one acknowledgment */
    np_time delay, least_timeout, first_timeout;                      /* `delay`: of an acknowledgment, at most */
};

enum np_state { NP_IDLE, NP_OPENING, NP_OPEN, NP_RECOVERY, NP_TIMED_OUT, NP_OVER };

/* What a sender's timer is for. */
enum np_alarm { NP_TIMEOUT, NP_PROBE, NP_REORDERED };

struct np_segment;

struct np_range {
    uint32_t first, end;
};

struct np_flow {
    int32_t there, back; /* ways */
    int64_t bytes, segment; /* of the whole flow, and of one segment; a stream's are released bit by bit */
    np_time start, end;  /* `end`: NP_NEVER as long as bytes are missing at the receiver */
    int32_t transport, stream; /* the stream that it carries, or NP_NOBODY */
    /* the sender */
    uint32_t total, una, next, recover;
    uint32_t hole, judged;         /* no segment below `hole` is to go again; below `judged` all are known or lost */
    uint32_t sacked, lost, resent; /* of those from una to next; `resent`: of the lost, again under way */
    int64_t eldest_again, newest_again; /* of these; they are linked */
    struct np_segment *segments;        /* by number, modulo (scoreboard.h) */
    uint32_t segment_room;
    uint32_t newest; /* of those that are there, the one that went last */
    np_time newest_sent, newest_trip, least_trip;
    int32_t state, backoff, alarm;
    int32_t probing, repeating; /* a tail loss probe is out, since `probed`; `repeating`: it had gone before */
    uint32_t probe_until;
    np_time probed;
    struct np_cwnd cwnd;
    double smoothed, variation;         /* seconds */
    double delivered, out, at_recovery; /* proportional rate reduction */
    struct np_timer timer;
    int64_t timeouts, again;
    /* the receiver */
    uint32_t expected;
    int32_t unanswered, marked; /* `marked`: whether the last segment was */
    struct np_range *ranges;    /* beyond `expected`, the one that changed last first */
    int32_t range_count, range_room;
    np_time echo_stamp;
    struct np_timer ack_timer;
};

struct np_tcp {
    struct np_network *network;
    const int32_t *hops;
    const struct np_tcp_settings *settings;
    struct np_flow *flows; /* in the order of their start */
    int64_t flow_count, begun;
    /* What a stream is told: bytes up to this segment have arrived in order. NULL: nothing. */
    void (*arrived)(void *who, int32_t flow, uint32_t segments);
    void *who;
};

int np_tcp_start(struct np_tcp *t);
void np_tcp_stop(struct np_tcp *t);

void np_tcp_packet(struct np_tcp *t, int32_t packet);
void np_tcp_timer(struct np_tcp *t, enum np_what what, uint32_t flow);
/* Flows that are due begin. */
void np_tcp_begin(struct np_tcp *t);
/* A stream may send so many segments more, of `bytes` each. */
void np_tcp_release(struct np_tcp *t, int32_t flow, uint32_t segments, int64_t bytes);

#endif
