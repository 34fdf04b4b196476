/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The packet sockets of one switch port on its network interface: a memory-mapped receive ring and batched sends. Or, of a port
 * without an interface, a Unix datagram socket (frame_socket.h).
 *
 * Receive: TPACKET_V2. The kernel fills one frame and wakes the thread at once. TPACKET_V3 hands over whole blocks with a
 * timer in milliseconds, so a lone packet would be delayed.
 *
 * Send: AF_XDP where available (xsk.h). Otherwise, and for frames that do not fit there, sendmmsg from a private arena. A
 * mapped AF_PACKET send ring is unsafe over veth: the kernel releases the ring frame when the peer's stack orphans the buffer,
 * while the buffer still points into the ring. */

#ifndef SS_INTERFACE_H
#define SS_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "frame_socket.h"
#include "xsk.h"

enum { SS_TX_BATCH = 64, SS_TX_ARENA = 128 * 1024 };

struct ss_interface_counters {
    uint64_t rx_packets, rx_bytes;
    uint64_t rx_dropped; /* the receive ring was full: the switch is overloaded */
    uint64_t rx_oversize; /* longer than the interface's MTU, or SS_FRAME_SOCKET_MTU: an offload is still on at the peer */
    uint64_t tx_packets, tx_bytes;
    uint64_t tx_dropped; /* the interface was absent or down, or the kernel refused the frame */
};

struct ss_interface {
    int fd; /* -1 while the interface is absent */
    int ifindex;
    uint32_t number;
    char ifname[IF_NAMESIZE];
    uint32_t mtu;

    struct ss_frame_socket *socket; /* NULL of a port on a network interface */

    uint8_t *ring;
    uint32_t frame_size, frame_count, next_frame;

    uint64_t inode; /* of `fd`: its key in the kernel's list of sockets */
    bool has_tap; /* another socket captures here: send through the stack, where taps see the frames */
    struct ss_xsk xsk;
    uint32_t xsk_bytes; /* bytes queued in xsk */
    uint64_t retry_ns, retry_wait_ns; /* time of the next attempt to reopen AF_XDP, and the backoff after it */

    /* Frames queued for sendmmsg. Only one of the two queues is used at a time, which preserves order. */
    uint32_t tx_count, tx_used;
    uint8_t *tx_arena;
    struct iovec tx_iov[SS_TX_BATCH][2]; /* an empty virtio_net_hdr, and the frame */
    struct mmsghdr tx_msg[SS_TX_BATCH];

    struct ss_interface_counters counters;
};

/* Receives one frame in the ring: valid and writable until the call returns. */
typedef void ss_interface_sink(void *context, struct ss_interface *interface, uint8_t *data, uint32_t length);

/* Initializes without binding. 0 or -ENOMEM. */
int ss_interface_init(struct ss_interface *interface, uint32_t number, const char *ifname);

/* Takes a Unix datagram socket in place of an interface; `fd` stays the caller's. 0 or a negative errno: see
 * ss_frame_socket_open. */
int ss_interface_open_socket(struct ss_interface *interface, int fd);

/* Binds to the interface of that name. 0 or a negative errno (-ENODEV: absent). */
int ss_interface_open(struct ss_interface *interface);

/* Closes the sockets; keeps counters and name. */
void ss_interface_close(struct ss_interface *interface);

void ss_interface_free(struct ss_interface *interface);

static inline bool ss_interface_is_open(const struct ss_interface *interface) { return interface->fd >= 0; }
static inline bool ss_interface_is_socket(const struct ss_interface *interface) { return interface->socket; }

/* RFC 2863 oper status: up, with a carrier. A socket always is. */
bool ss_interface_is_oper_up(const struct ss_interface *interface);

/* The MTU exceeds the ring's frame size: reopen the interface. */
bool ss_interface_mtu_grew(const struct ss_interface *interface);

/* Passes up to `budget` received frames to `sink`; returns their number. */
uint32_t ss_interface_receive(struct ss_interface *interface, uint32_t budget, ss_interface_sink *sink, void *context);

/* Queues a copy of the frame; flushes the batch first when it is full. */
void ss_interface_send(struct ss_interface *interface, const uint8_t *data, uint32_t length);

/* Sends the queued frames. */
void ss_interface_flush(struct ss_interface *interface);

/* Reopens the AF_XDP socket if it was closed (the interface was down). */
void ss_interface_reopen_xsk(struct ss_interface *interface);

/* Periodic: the same with exponential backoff, 1 s to 64 s. */
void ss_interface_retry_xsk(struct ss_interface *interface, uint64_t now_ns);

/* With a tap frames are sent through the stack; without one through AF_XDP, past the taps. */
void ss_interface_set_tap(struct ss_interface *interface, bool has_tap);

/* Adds the kernel's drop counter, which each read resets, to `counters.rx_dropped`. */
void ss_interface_read_kernel_drops(struct ss_interface *interface);

#endif
