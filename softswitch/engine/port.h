/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One switch port: sockets on a network interface, with a memory-mapped receive ring and batched sends.
 *
 * Receive: TPACKET_V2. The kernel fills one frame and wakes us at once; TPACKET_V3 would be as cheap, but it hands
 * over whole blocks and its block timer counts in milliseconds, so a lone packet would wait for company.
 *
 * Send: AF_XDP where it is to be had (xsk.h), else, and for frames that do not fit there, sendmmsg from a private arena. A
 * mapped AF_PACKET send ring would save a copy, but over veth it is wrong: the ring frame is given back as soon as the
 * peer's stack orphans the buffer, while that buffer still points into the ring. */

#ifndef NETFOLD_PORT_H
#define NETFOLD_PORT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xsk.h"

enum { PORT_TX_BATCH = 64, PORT_TX_ARENA = 128 * 1024 };

struct port_counters {
    uint64_t rx_packets, rx_bytes;
    uint64_t rx_dropped;  /* the receive ring was full: the switch is too slow */
    uint64_t rx_oversize; /* longer than the interface's MTU allows: an offload is still on at the peer */
    uint64_t tx_packets, tx_bytes;
    uint64_t tx_dropped; /* the interface was gone or down, or the kernel refused the frame */
};

struct port {
    int fd; /* -1 while the interface is absent */
    int ifindex;
    uint32_t number;
    char ifname[IF_NAMESIZE];
    uint32_t mtu;

    uint8_t *ring;
    uint32_t frame_size, frame_count, next_frame;

    uint64_t inode; /* of `fd`: who this is in the kernel's list of sockets */
    bool watched;   /* somebody else listens: frames go the ordinary way, which taps see */
    struct xsk xsk;
    uint32_t xsk_bytes; /* of the frames queued there */
    uint64_t retry_ns, retry_wait_ns; /* when to try AF_XDP again, and how long to wait after the next failure */

    /* The frames queued for sendmmsg. Never are frames queued in both places, so their order is kept. */
    uint32_t tx_count, tx_used;
    uint8_t *tx_arena;
    struct iovec tx_iov[PORT_TX_BATCH][2]; /* a virtio_net_hdr that asks for nothing, and the frame */
    struct mmsghdr tx_msg[PORT_TX_BATCH];

    struct port_counters counters;
};

/* Takes one frame that lies in the ring: valid, and writable, until the call returns. */
typedef void port_sink(void *context, struct port *port, uint8_t *data, uint32_t length);

/* A port that is not bound yet. 0, or -ENOMEM. */
int port_init(struct port *port, uint32_t number, const char *ifname);

/* Binds to the interface that has the port's name now. 0, or a negative errno (-ENODEV: there is none). */
int port_open(struct port *port);

/* Lets the interface go; counters and name stay. */
void port_close(struct port *port);

void port_free(struct port *port);

static inline bool port_is_open(const struct port *port) { return port->fd >= 0; }

/* Is the interface up, with a carrier? */
bool port_is_live(const struct port *port);

/* May the interface now send frames that are too long for the ring? Then it must be opened again. */
bool port_mtu_grew(const struct port *port);

/* Hands up to `budget` received frames to `sink`; returns how many. */
uint32_t port_receive(struct port *port, uint32_t budget, port_sink *sink, void *context);

/* Queues a copy of the frame; sends the batch first when there is no room. */
void port_send(struct port *port, const uint8_t *data, uint32_t length);

/* Sends what is queued. */
void port_flush(struct port *port);

/* Tries the quick way to send again, if it was lost (the interface was down). */
void port_revive(struct port *port);

/* The same, but ever more rarely while it is lost again and again: to be called now and then. */
void port_retry(struct port *port, uint64_t now_ns);

/* From now on frames go the ordinary way, which taps see, or the quick way, which they do not. */
void port_set_watched(struct port *port, bool watched);

/* Adds the kernel's own drop counter (it resets with each reading) to `counters.rx_dropped`. */
void port_read_kernel_drops(struct port *port);

#endif
