/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The kind of port of AF_XDP: frames pass the kernel's stack by in both directions, one queue of the device for each thread.
 * They arrive without the kernel's notes, so a run of several (GSO) is cut before, and a checksum that the sender left to the
 * device is completed here. */

#include <errno.h>
#include <linux/if_ether.h>
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"
#include "interface.h"
#include "offloads.h"
#include "segments.h"
#include "xdp_program.h"
#include "xsk.h"

enum { LINK_OVERHEAD = ETH_HLEN + 2 * SS_VLAN_TAG };

struct xdp_port {
    int link_fd; /* of the program on the interface; -1: of another thread */
    struct ss_xsk xsk;
    struct ss_departures departures; /* the charge is descriptors */
    uint32_t flushed; /* of xsk.produced */
    uint64_t queued_bytes, dropped;
};

static void close_port(struct ss_interface *interface) {
    struct xdp_port *port = interface->own;
    if (port->link_fd >= 0) close(port->link_fd);
    if (ss_xsk_is_open(&port->xsk)) interface->counters.tx_dropped += ss_xsk_queued(&port->xsk);
    ss_xsk_close(&port->xsk);
    close(interface->device_fd);
    free(port);
}

static int configure(struct ss_interface *interface, struct xdp_port *port) {
    uint32_t longest = interface->mtu + LINK_OVERHEAD;
    if (longest + SS_XSK_RESERVED > SS_XSK_LONGEST) return -EMSGSIZE;
    /* Frames of a queue without a socket would go to the kernel, and the kernel sends none in a queue that the device lacks. */
    if (!ss_device_has_queues(interface->device_fd, interface->ifname, interface->threads)) return -EUSERS;
    int error = ss_xsk_open_both(&port->xsk, interface->ifindex, interface->thread, longest);
    if (!error) error = ss_xdp_set_socket(interface->sockets_fd, interface->thread, port->xsk.fd);
    if (error || interface->thread) return error;
    port->link_fd = ss_xdp_attach(interface->given_fd, interface->ifindex);
    return port->link_fd < 0 ? port->link_fd : 0;
}

static int open_port(struct ss_interface *interface) {
    int error = ss_interface_open_device(interface);
    if (error) return error;
    struct xdp_port *port = calloc(1, sizeof *port);
    if (!port) {
        close(interface->device_fd);
        return -ENOMEM;
    }
    interface->own = port;
    port->link_fd = port->xsk.fd = -1;
    if ((error = configure(interface, port))) {
        ss_interface_close(interface);
        return error;
    }
    interface->wait_fd = port->xsk.fd;
    interface->is_zero_copy = port->xsk.is_zero_copy;
    return 0;
}

static void deliver(void *context, uint8_t *data, uint32_t length) {
    const struct ss_interface *interface = context;
    if (!interface->is_zero_copy) ss_complete_partial(data, length);
    ss_interface_deliver(context, data, length);
}

static uint32_t receive(struct ss_interface *interface, uint32_t budget) {
    return ss_xsk_receive(&((struct xdp_port *)interface->own)->xsk, budget, deliver, interface);
}

static uint8_t *place(struct ss_interface *interface, uint32_t length) {
    struct xdp_port *port = interface->own;
    return length <= port->xsk.chunk_size && ss_xsk_has_space(&port->xsk, 1) ? ss_xsk_place(&port->xsk) : NULL;
}

static bool add(struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    struct xdp_port *port = interface->own;
    if (length > port->xsk.chunk_size || !ss_xsk_has_space(&port->xsk, 1)) return false;
    ss_xsk_queue(&port->xsk, data, length);
    port->queued_bytes += length;
    return true;
}

static void flush(struct ss_interface *interface, uint64_t now_ns) {
    struct xdp_port *port = interface->own;
    uint32_t queued = port->xsk.produced - port->flushed;
    if (!ss_xsk_queued(&port->xsk)) return;
    (void)ss_xsk_flush(&port->xsk); /* refused frames go with a later batch */
    interface->counters.tx_packets += queued;
    interface->counters.tx_bytes += port->queued_bytes;
    ss_departures_add(&port->departures, queued, queued, now_ns);
    port->flushed = port->xsk.produced;
    port->queued_bytes = 0;
}

static struct ss_backlog backlog(struct ss_interface *interface, uint64_t now_ns) {
    struct xdp_port *port = interface->own;
    if (!port->departures.count) return (struct ss_backlog){0};
    return ss_departures_backlog(&port->departures, ss_xsk_outstanding(&port->xsk), now_ns);
}

static void read_drops(struct ss_interface *interface) {
    struct xdp_port *port = interface->own;
    uint64_t dropped = ss_xsk_is_open(&port->xsk) ? ss_xsk_dropped(&port->xsk) : 0;
    if (dropped <= port->dropped) return;
    interface->counters.rx_dropped += dropped - port->dropped;
    port->dropped = dropped;
}

const struct ss_port_kind ss_xdp_port = SS_PORT_KIND("xdp", .backlog = backlog, .read_drops = read_drops);
