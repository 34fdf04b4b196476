/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The packet sockets of one switch port on its network interface: a memory-mapped receive ring (packet_ring.h) and batched
 * sends (transmit_queue.h). A port without an interface has a Unix datagram socket (frame_socket.h).
 *
 * Frames that form no runs are sent through AF_XDP where it is available (xsk.h). A mapped AF_PACKET send ring is unsafe over
 * veth: the kernel releases the ring frame when the peer's stack orphans the buffer, while the buffer still points into the
 * ring. */

#ifndef SS_INTERFACE_H
#define SS_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "frame_socket.h"
#include "packet_ring.h"
#include "transmit_queue.h"
#include "xsk.h"

struct ss_interface_counters {
    uint64_t rx_packets, rx_bytes;
    uint64_t rx_dropped; /* the receive ring, or the buffer of long frames, was full: the switch is overloaded */
    uint64_t rx_oversize; /* a super-frame of a form that cannot be segmented, or a datagram above SS_FRAME_SOCKET_MTU */
    uint64_t tx_packets, tx_bytes;
    uint64_t tx_dropped; /* the interface was absent or down, or the kernel refused the frame */
    uint64_t tx_oversize; /* the frame was longer than the interface's MTU allows */
};

struct ss_interface {
    int fd; /* -1 while the interface is absent */
    int ifindex;
    uint32_t number;
    char ifname[IF_NAMESIZE];
    uint32_t mtu;
    uint32_t run_ring_bytes; /* set before it opens: of a receive ring whose frames hold runs of others; 0: of the usual one */

    struct ss_frame_socket *socket; /* NULL of a port on a network interface */

    uint32_t thread, threads; /* of the data plane: this one's socket is one of a group (fanout.h) */

    struct ss_packet_ring ring;
    struct ss_transmit_queue transmit;

    uint64_t inode; /* of `fd`: its key in the kernel's list of sockets */
    bool has_tap; /* another socket captures here: send through the stack, where taps see the frames */
    struct ss_xsk xsk;
    uint64_t retry_ns, retry_wait_ns; /* time of the next attempt to reopen AF_XDP, and the backoff after it */

    struct ss_interface_counters counters;
};

/* Receives one frame, which is valid and writable until the call returns. */
typedef void ss_interface_sink(void *context, struct ss_interface *interface, uint8_t *data, uint32_t length);

/* Initializes without binding, for thread `thread` of `threads`. Returns 0 or -ENOMEM. */
int ss_interface_init(struct ss_interface *interface, uint32_t number, const char *ifname, uint32_t thread, uint32_t threads);

/* Takes a Unix datagram socket in place of an interface; `fd` stays the caller's. Only the first thread receives from it.
 * Returns 0 or a negative errno, as ss_frame_socket_open. */
int ss_interface_open_socket(struct ss_interface *interface, int fd);

/* Binds to the interface of that name. Returns 0 or a negative errno (-ENODEV: absent). */
int ss_interface_open(struct ss_interface *interface);

/* Closes the sockets; keeps counters and name. */
void ss_interface_close(struct ss_interface *interface);

void ss_interface_free(struct ss_interface *interface);

static inline bool ss_interface_is_open(const struct ss_interface *interface) { return interface->fd >= 0; }
static inline bool ss_interface_is_socket(const struct ss_interface *interface) { return interface->socket; }

/* Returns the oper status of RFC 2863: up, with a carrier. A socket is always up. */
bool ss_interface_is_oper_up(const struct ss_interface *interface);

/* Returns whether the MTU exceeds the ring's frame size: then the interface is to be opened again. */
bool ss_interface_mtu_grew(const struct ss_interface *interface);

/* Passes received frames to `sink` until `budget` is reached, which the frames of a super-frame may exceed; returns their
 * number, lost ones included. */
uint32_t ss_interface_receive(struct ss_interface *interface, uint32_t budget, ss_interface_sink *sink, void *context);

/* Queues the frame, by a copy unless it is in its place of the queue; flushes the batch first when it is full. */
void ss_interface_send(struct ss_interface *interface, const uint8_t *data, uint32_t length);

/* Sends the queued frames. */
void ss_interface_flush(struct ss_interface *interface);

/* Reopens the AF_XDP socket if it was closed (the interface was down). */
void ss_interface_reopen_xsk(struct ss_interface *interface);

/* Does the same periodically, with exponential backoff, 1 s to 64 s. */
void ss_interface_retry_xsk(struct ss_interface *interface, uint64_t now_ns);

/* Sets whether captures are present: then frames are sent through the stack, otherwise through AF_XDP, past the taps. */
void ss_interface_set_tap(struct ss_interface *interface, bool has_tap);

/* Reads the device's offloads; call it periodically. With `wants_runs` frames of a run leave as one where the device segments
 * them (offloads.h). */
void ss_interface_update_merging(struct ss_interface *interface, bool wants_runs);

/* Adds the kernel's drop counter, which each read resets, to `counters.rx_dropped`. */
void ss_interface_read_kernel_drops(struct ss_interface *interface);

#endif
