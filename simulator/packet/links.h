/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Packets and links: one direction of a link, with its queue. When a packet is queued its start and arrival are known, so it
 * costs one event a link. */

#ifndef NETFOLD_LINKS_H
#define NETFOLD_LINKS_H

#include "events.h"

enum {
    NP_NONE = -1,
    NP_LANES = 9, /* with this many the engine has four calls in flight */
    NP_WIRE_BYTES = 16 + 4 * NP_LANES,
    NP_BLOCKS = 3
};

enum np_kind { NP_UP, NP_DOWN, NP_RESEND, NP_DATA, NP_ACK, NP_SYN, NP_SYN_ACK };

enum { NP_NOT_ECT = 0, NP_ECT = 2, NP_CE = 3 };

struct np_packet {
    int32_t next;
    int32_t path;   /* position in the hops, or an arc */
    int32_t owner; /* an edge or a flow */
    uint16_t bytes;
    uint8_t kind, ecn;
    np_time starts, arrives;
    union {
        uint8_t wire[NP_WIRE_BYTES]; /* the protocol's packet, with few lanes */
        struct {
            uint32_t number; /* of the segment; of an acknowledgment: the next expected */
            uint16_t echo, blocks;
            np_time stamp;
            uint32_t block[NP_BLOCKS][2]; /* selectively acknowledged: first, and one more than the last */
        } tcp;
    };
};

/* Rate, queue capacity, marking thresholds; then the state. */
struct np_link {
    double ps_per_byte;
    np_time delay;
    int64_t queue_packets, queue_bytes;
    double mark_from, mark_all,
        mark_share; /* queued packets: RED from the first to the second, up to the share; from the second all */
    double loss;
    double burst; /* depth of a token bucket, bytes; 0: packets are serialized */
    /* state */
    int64_t sent, sent_bytes, dropped, lost, marked, max_waiting;
    double waiting_area; /* byte picoseconds in the queue */
    np_time free_at; /* of a token bucket: when it is full */
    int64_t waiting, waiting_bytes;
    int32_t head, tail, cursor; /* packets on the link or in the queue; the first in the queue */
    int32_t pad;
};

struct np_network {
    struct np_events events;
    np_time now;
    struct np_link *links;
    struct np_packet *packets;
    int32_t packet_capacity, free;
    uint64_t random;
    int out_of_memory; /* no memory */
};

/* Returns a new packet, or NP_NONE. Pointers to packets are valid until the next new one. */
int32_t np_packet_new(struct np_network *n);
void np_packet_free(struct np_network *n, int32_t packet);

void np_link_send(struct np_network *n, int32_t link, int32_t packet);
/* Removes the link's first packet, which has arrived; postpones or removes the link's event. */
int32_t np_link_take_arrival(struct np_network *n, int32_t link);

/* Returns a random number in [0, 1). */
double np_random(struct np_network *n);

#endif
