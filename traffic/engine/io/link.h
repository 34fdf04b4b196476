/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A host's end of a link, for a process without a network interface: a Unix datagram socket, one Ethernet frame a datagram. IPv4 and
 * UDP are made and checked here. Frames leave at the link's rate from a queue, as from an interface with a token bucket. */

#ifndef NETFOLD_LINK_H
#define NETFOLD_LINK_H

#include <netinet/in.h>
#include <stdint.h>

#include "../wire/export.h"
#include "udp_batch.h"

/* The host's addresses are in host order; those of Ethernet have 48 bits. `gateway_mac` is the switch's. `fd` stays the
 * caller's. */
struct nf_link_end {
    int64_t fd, address, mac, gateway_mac;
    double rate_bps;
};

struct link;

/* Opens a UDP socket bound to `port`, on the link, for packets of this length, or shorter. Returns NULL if there is no memory. */
struct link *link_open(const struct nf_link_end *end, int64_t port, int64_t packet_bytes);
void link_close(struct link *l);
int link_fd(const struct link *l);

/* Queues packets of lengths[i] bytes in order, for to[i] or all for one address. Returns their number: fewer than `count` if the queue is full. */
int64_t link_send(struct link *l, const uint8_t *const *packets, const int64_t *lengths, const struct sockaddr_in *to,
                  int64_t count, double now);
int64_t link_send_to_one(struct link *l, const uint8_t *const *packets, const int64_t *lengths, const struct sockaddr_in *to,
                         int64_t count, double now);

/* Sends the queued frames that are due. */
void link_flush(struct link *l, double now, struct udp_batch_errors *errors);

/* Returns when frames are due next; infinite if none wait, or the socket is full. */
double link_next_due(const struct link *l);

/* Returns whether frames wait for a socket that is full (POLLOUT). */
int link_is_full(const struct link *l);

/* Passes the packets for this port that have arrived to the sink, without waiting. Returns the number of frames, at most
 * NF_BATCH_IN. */
int64_t link_receive(struct link *l, on_datagram *take, void *context, struct udp_batch_errors *errors);

#endif
