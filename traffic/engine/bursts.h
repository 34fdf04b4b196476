/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Packets of one length through a UDP socket, many at a time. Where the kernel takes it, packets to one place go as a burst
 * that it, or the device, cuts (UDP_SEGMENT): one way through the kernel for all of them; and what it put together
 * (UDP_GRO) is taken apart here. Elsewhere they go and come one by one. */

#ifndef NETFOLD_BURSTS_H
#define NETFOLD_BURSTS_H

#include <netinet/in.h>
#include <stdint.h>

enum {
    BURSTS_BATCH = 128, /* packets of one `bursts_send`, */
    BURSTS_IN = 64      /* and datagrams of one `bursts_receive`, at most */
};

struct burst_socket {
    int fd;
    int most; /* packets that may go at once */
};

/* Memory for system calls; of one thread, for any number of its sockets. */
struct bursts;

/* NULL: no memory. */
struct bursts *bursts_create(int64_t packet_bytes);
void bursts_destroy(struct bursts *b);

/* A socket, which stays the caller's. */
struct burst_socket bursts_open(int fd);

/* Sends up to BURSTS_BATCH packets in their order, to `to[i]` or (`to` NULL) to whom the socket is connected. Gives how many
 * of them are done with, sent or lost; fewer than `count` if the socket is full, or failed: then `error` is its errno. */
int64_t bursts_send(struct bursts *b, struct burst_socket *s, const uint8_t *const *packets, const struct sockaddr_in *to,
                    int64_t count, int *error);

/* Hands over what has come, without waiting. `marked`: it met congestion. Other lengths than that of a packet are handed over,
 * too. Gives how many datagrams the kernel had, or 0 and an errno in `error`. */
typedef void bursts_take(void *context, const uint8_t *packet, int64_t length, int marked, const struct sockaddr_in *from);
int64_t bursts_receive(struct bursts *b, struct burst_socket *s, bursts_take *take, void *context, int *error);

#endif
