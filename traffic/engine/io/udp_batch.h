/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Packets of one length, and headers alone, through a UDP socket, in batches. Where the kernel supports it, consecutive packets to one address are
 * one send that the kernel or the device cuts (UDP_SEGMENT), and what the kernel merged (UDP_GRO) is cut here. Elsewhere packets
 * are sent and received one by one. */

#ifndef NETFOLD_UDP_BATCH_H
#define NETFOLD_UDP_BATCH_H

#include <netinet/in.h>
#include <stdint.h>

enum {
    NF_BATCH_OUT = 128, /* packets of one udp_batch_send, at most */
    NF_BATCH_IN = 64, /* datagrams of one udp_batch_receive, at most */
    NF_RUN_SLOTS = 16 /* packets that are one send have slots of one such range: they are one shard's (server/shards.h) */
};

struct batch_socket {
    int fd;
    int max_packets; /* of one segmented send */
};

/* Errors of one socket, or of several together. */
struct udp_batch_errors {
    int fatal; /* the errno of the last failure, 0: none */
    int64_t survived; /* ICMP errors, and packets that the kernel dropped */
};

/* Memory for system calls: it belongs to one thread and serves any number of its sockets. */
struct udp_batch;

/* Returns NULL if there is no memory. */
struct udp_batch *udp_batch_create(int64_t packet_bytes);
void udp_batch_destroy(struct udp_batch *b);

/* `fd` stays the caller's. */
struct batch_socket batch_socket_open(int fd);

/* Sends up to NF_BATCH_OUT packets of lengths[i] bytes in order, to to[i] or (`to` NULL) to the connected address. Returns how many of them are
 * sent or lost: fewer than `count` if the socket is full, a signal arrived, or the socket failed. Adds to `errors`. */
int64_t udp_batch_send(struct udp_batch *b, struct batch_socket *s, const uint8_t *const *packets, const int64_t *lengths,
                       const struct sockaddr_in *to, int64_t count, struct udp_batch_errors *errors);

/* Receives a packet of any length. `marked`: it has an ECN mark. */
typedef void on_datagram(void *context, const uint8_t *packet, int64_t length, int marked, const struct sockaddr_in *from);

/* Passes the packets that the socket has received to the sink, without waiting. Returns how many datagrams the kernel had. Adds
 * to `errors`. */
int64_t udp_batch_receive(struct udp_batch *b, struct batch_socket *s, on_datagram *take, void *context,
                          struct udp_batch_errors *errors);

#endif
