/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Packets, and the lines that they travel: one direction of a link, with the queue before it. When a packet is put in, it is
 * known when it starts and when it arrives, so it costs one event a line. */

#ifndef NETFOLD_LINES_H
#define NETFOLD_LINES_H

#include "events.h"

enum {
    NP_NOBODY = -1,
    NP_LANES = 9, /* the engine of workers keeps calls under way where packets have so many */
    NP_WIRE_BYTES = 16 + 4 * NP_LANES,
    NP_BLOCKS = 3
};

enum np_kind { NP_UP, NP_DOWN, NP_ANSWER, NP_DATA, NP_ACK, NP_SYN, NP_SYN_ACK };

enum { NP_NOT_ECT = 0, NP_ECT = 2, NP_CE = 3 };

struct np_packet {
    int32_t next;
    int32_t way;   /* place in the hops, or an arc */
    int32_t owner; /* an edge or a flow */
    uint16_t bytes;
    uint8_t kind, ecn;
    np_time starts, arrives;
    union {
        uint8_t wire[NP_WIRE_BYTES]; /* the protocol's packet, with few lanes */
        struct {
            uint32_t number; /* of the segment; what an acknowledgment waits for */
            uint16_t echo, blocks;
            np_time stamp;
            uint32_t block[NP_BLOCKS][2]; /* selectively acknowledged: first, and the one behind the last */
        } tcp;
    };
};

/* Rates, rooms and marks as they are; counters from 0. */
struct np_line {
    double ps_per_byte;
    np_time delay;
    int64_t room_packets, room_bytes;
    double mark_from, mark_all, mark_share; /* waiting packets: from here, at most with this share, from there all */
    double loss;
    double burst; /* bytes that leave at once, as out of a token bucket; 0: each takes its time on the line */
    /* what happens on it */
    int64_t sent, sent_bytes, dropped, lost, marked, most_waiting;
    double waited; /* bytes times picoseconds */
    np_time free_at; /* a bucket's: when it is full */
    int64_t waiting, waiting_bytes;
    int32_t head, tail, cursor; /* that travel or wait; the first that waits */
    int32_t pad;
};

struct np_network {
    struct np_events events;
    np_time now;
    struct np_line *lines;
    struct np_packet *packets;
    int32_t packet_room, free;
    uint64_t random;
    int broken; /* no memory */
};

/* A fresh packet, or NP_NOBODY. Addresses of packets are good until the next fresh one. */
int32_t np_packet_new(struct np_network *n);
void np_packet_free(struct np_network *n, int32_t packet);

void np_line_send(struct np_network *n, int32_t line, int32_t packet);
/* The line's first packet has arrived: it is taken off, and the line's event is put off or goes. */
int32_t np_line_arrival(struct np_network *n, int32_t line);

/* In [0, 1). */
double np_random(struct np_network *n);

#endif
