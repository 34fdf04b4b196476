/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The way of one switch port to the wire. Its kind is a table of operations; names, counters, the check of the MTU and the
 * order of calls are the same for all kinds. Faults, captures, threads and timers are the engine's (ports.c, batch.c). */

#ifndef SS_INTERFACE_H
#define SS_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "departures.h"
#include "fanout.h"

struct ss_interface_counters {
    uint64_t rx_packets, rx_bytes;
    uint64_t rx_dropped; /* the receive ring, or the buffer of long frames, was full: the switch is overloaded */
    uint64_t rx_oversize; /* a super-frame of a form that cannot be segmented, or a frame that the port's buffers do not hold */
    uint64_t tx_packets, tx_bytes;
    uint64_t tx_dropped; /* the interface was absent or down, or the kernel refused the frame */
    uint64_t tx_oversize; /* the frame was longer than the interface's MTU allows */
};

struct ss_port_kind;
struct ss_interface;

/* Receives one frame, which is valid and writable until the call returns. */
typedef void ss_interface_sink(void *context, struct ss_interface *interface, uint8_t *data, uint32_t length);

struct ss_interface {
    const struct ss_port_kind *kind;
    void *own; /* the kind's state; NULL while the port is closed */
    uint32_t number;
    char ifname[IF_NAMESIZE];
    uint32_t thread, threads; /* of the data plane: this one's descriptors are some of a group */
    int given_fd; /* the Unix datagram socket, or the XDP program, which stay the user's; else -1 */
    int sockets_fd; /* the table of the XDP program (xdp_program.h); else -1 */
    uint32_t run_ring_bytes; /* of a receive ring whose frames hold runs of others; 0: of the usual one */
    const char *device; /* the DPDK device with its arguments, which stays the user's */
    uint32_t wanted_mtu; /* of a device that the kernel does not have */

    /* Set by the kind as it opens. */
    int wait_fd; /* readable when frames arrive; -1: this thread receives none */
    int device_fd; /* answers the ioctls of the kernel's network device; -1: there is none */
    char netdev[IF_NAMESIZE]; /* its name: `ifname`, but for DPDK */
    int ifindex;
    uint32_t mtu, longest; /* of the device; of a frame without VLAN tag that may be sent */
    uint64_t inode; /* of the packet socket that receives: its key in the kernel's list of sockets */

    bool wants_runs; /* frames of a run are to leave as one where the device segments them */
    bool has_tap; /* another socket captures here */
    bool merges; /* runs do leave as one */
    bool is_zero_copy; /* the driver reads and writes the frames where they lie */

    struct ss_interface_counters counters;
    ss_interface_sink *sink; /* of the call of ss_interface_receive */
    void *sink_context;
};

/* All but `open` are called only while the port is open. */
struct ss_port_kind {
    const char *name;
    /* Opens, again after a close, and sets `own` and the members above. Returns 0 or a negative errno, closed then (-ENODEV: the
     * device is absent). */
    int (*open)(struct ss_interface *interface);
    /* Releases all and counts queued frames as dropped. */
    void (*close)(struct ss_interface *interface);
    /* Passes received frames to ss_interface_deliver until `budget` is reached, which the frames of a super-frame may exceed.
     * Returns their number, lost ones included. */
    uint32_t (*receive)(struct ss_interface *interface, uint32_t budget);
    /* Returns where the next frame may be written before `add` takes it; NULL: it is to be copied. */
    uint8_t *(*place)(struct ss_interface *interface, uint32_t length);
    /* Queues the frame, by a copy unless it is in its place. Returns false if the queue is full: flush it first. */
    bool (*add)(struct ss_interface *interface, const uint8_t *data, uint32_t length);
    /* Sends the queued frames. */
    void (*flush)(struct ss_interface *interface, uint64_t now_ns);
    /* Returns what the kernel has and has not left the device. NULL: the kind has no such queue. */
    struct ss_backlog (*backlog)(struct ss_interface *interface, uint64_t now_ns);
    /* Looks at the device and at the wishes above, now and then. `is_event`: the kernel reported a change. NULL: nothing changes. */
    void (*update)(struct ss_interface *interface, uint64_t now_ns, bool is_event);
    /* Adds what the kernel dropped since the last call to `counters.rx_dropped`. NULL: it reports none. */
    void (*read_drops)(struct ss_interface *interface);
    /* Sets the program that deals frames to the threads; returns 0 or a negative errno. NULL: the kind has its own way. */
    int (*steer)(struct ss_interface *interface, const struct ss_steering *steering);
    /* Returns whether the link has a carrier; -ENODEV: the device is gone. The engine calls it ten times a second, and tries an
     * absent device again and again. NULL: the kernel reports changes of all devices of this kind. */
    int (*link)(const struct ss_interface *interface);
};

/* The operations that each kind has, by the names that they have in its file. */
#define SS_PORT_KIND(label, ...) \
    {.name = label, \
     .open = open_port, \
     .close = close_port, \
     .receive = receive, \
     .place = place, \
     .add = add, \
     .flush = flush, \
     __VA_ARGS__}

extern const struct ss_port_kind ss_packet_port, ss_socket_port, ss_xdp_port;

/* Initializes without opening, for thread `thread` of `threads`. */
void ss_interface_init(struct ss_interface *interface, const struct ss_port_kind *kind, uint32_t number, const char *ifname,
                       uint32_t thread, uint32_t threads);

int ss_interface_open(struct ss_interface *interface);

/* Closes; keeps counters and name. */
void ss_interface_close(struct ss_interface *interface);

static inline bool ss_interface_is_open(const struct ss_interface *interface) { return interface->own; }

/* Returns the oper status of RFC 2863: up, with a carrier. A port without a device is up while it is open. */
bool ss_interface_is_oper_up(const struct ss_interface *interface);

/* Returns whether the device is gone or has another name, or a larger MTU: then the port is to be opened again. Follows an MTU
 * that shrinks. */
bool ss_interface_is_stale(struct ss_interface *interface);

uint32_t ss_interface_receive(struct ss_interface *interface, uint32_t budget, ss_interface_sink *sink, void *context);
uint8_t *ss_interface_place(struct ss_interface *interface, uint32_t length);

/* Queues the frame and flushes the batch first when it is full. Counts a frame that cannot be sent. */
void ss_interface_send(struct ss_interface *interface, const uint8_t *data, uint32_t length, uint64_t now_ns);
void ss_interface_flush(struct ss_interface *interface, uint64_t now_ns);
struct ss_backlog ss_interface_backlog(struct ss_interface *interface, uint64_t now_ns);
void ss_interface_update(struct ss_interface *interface, uint64_t now_ns, bool is_event);
void ss_interface_read_drops(struct ss_interface *interface);

/* For kinds: counts a received frame and passes it on. */
void ss_interface_deliver(void *interface, uint8_t *data, uint32_t length);

/* For kinds: sets mtu and longest. */
void ss_interface_set_mtu(struct ss_interface *interface, uint32_t mtu);

/* For kinds: opens a socket of `netdev` that sends and receives nothing until it is bound, and will keep the device promiscuous;
 * sets device_fd, ifindex, mtu and longest. Returns 0 or a negative errno; close device_fd. */
int ss_interface_open_device(struct ss_interface *interface);

#endif
