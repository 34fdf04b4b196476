/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The kind of port of a packet socket: a memory-mapped receive ring (packet_ring.h) and batched sends (transmit_queue.h).
 *
 * Frames that form no runs are sent through AF_XDP where it is available (xsk.h). A mapped AF_PACKET send ring is unsafe over
 * veth: the kernel releases the ring frame when the peer's stack orphans the buffer, while the buffer still points into the
 * ring. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fanout.h"
#include "interface.h"
#include "offloads.h"
#include "packet_ring.h"
#include "transmit_queue.h"
#include "xsk.h"

#define RETRY_FIRST_NS 1000000000ull
#define RETRY_LAST_NS 64000000000ull

enum {
    LINK_OVERHEAD = ETH_HLEN + 2 * SS_VLAN_TAG, /* bytes of a frame beyond the MTU, at most: addresses, type, two tags */
    SEND_BUFFER = 8 * 1024 * 1024,
    RING_BYTES = 8 * 1024 * 1024,
    RING_RUN = 16, /* frames of a run that the receive ring holds: netfold's hosts send no more at once */
};

struct packet_port {
    int fd;
    struct ss_packet_ring ring;
    struct ss_transmit_queue transmit;
    bool bypasses; /* the queueing discipline and the taps */
    struct ss_departures departures; /* by the socket; the charge is memory */
    struct ss_xsk xsk;
    struct ss_departures xsk_departures; /* the charge is descriptors */
    uint64_t retry_ns, retry_wait_ns; /* time of the next attempt to open AF_XDP, and the backoff after it */
};

static int set_flag(int fd, int option, int value) {
    return setsockopt(fd, SOL_PACKET, option, &value, sizeof value) < 0 ? -errno : 0;
}

static int open_ring(struct ss_interface *interface, struct packet_port *port) {
    uint32_t frame = interface->mtu + LINK_OVERHEAD, run = RING_RUN * frame;
    if (!interface->run_ring_bytes) return ss_ring_open(&port->ring, port->fd, frame, RING_BYTES);
    return ss_ring_open(&port->ring, port->fd, run < SS_RING_LONGEST ? run : SS_RING_LONGEST, interface->run_ring_bytes);
}

static int configure(struct ss_interface *interface, struct packet_port *port) {
    int size = SEND_BUFFER, fd = port->fd, error;
    if ((error = set_flag(fd, PACKET_IGNORE_OUTGOING, 1))) return error;
    if ((error = set_flag(fd, PACKET_QDISC_BYPASS, 1))) return error;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if ((error = open_ring(interface, port))) return error;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = interface->ifindex};
    if (interface->threads > 1 && (error = ss_fanout_close_gate(fd))) return error;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) return -errno;
    return interface->threads > 1 ? ss_fanout_join(fd, interface->number) : 0;
}

/* A queue of the device takes one AF_XDP socket, which is the first thread's. */
static bool misses_xsk(const struct ss_interface *interface, const struct packet_port *port) {
    return port->bypasses && !interface->thread && !ss_xsk_is_open(&port->xsk);
}

static void open_xsk(struct ss_interface *interface, struct packet_port *port) {
    if (misses_xsk(interface, port)) (void)ss_xsk_open(&port->xsk, interface->ifindex, interface->mtu + LINK_OVERHEAD);
}

static void retry_xsk(struct ss_interface *interface, struct packet_port *port, uint64_t now_ns) {
    if (!misses_xsk(interface, port) || now_ns < port->retry_ns) return;
    if (port->retry_ns) open_xsk(interface, port);
    port->retry_wait_ns = port->retry_wait_ns ? port->retry_wait_ns * 2 : RETRY_FIRST_NS;
    if (port->retry_wait_ns > RETRY_LAST_NS) port->retry_wait_ns = RETRY_LAST_NS;
    port->retry_ns = now_ns + port->retry_wait_ns;
}

static void close_xsk(struct ss_interface *interface, struct packet_port *port) {
    interface->counters.tx_dropped += ss_xsk_queued(&port->xsk);
    ss_xsk_close(&port->xsk);
    port->xsk_departures = (struct ss_departures){0};
}

static void close_port(struct ss_interface *interface) {
    struct packet_port *port = interface->own;
    ss_ring_close(&port->ring);
    if (ss_xsk_is_open(&port->xsk)) close_xsk(interface, port);
    close(port->fd);
    interface->counters.tx_dropped += port->transmit.frames;
    ss_transmit_free(&port->transmit);
    free(port);
}

static int open_port(struct ss_interface *interface) {
    int error = ss_interface_open_device(interface);
    if (error) return error;
    struct packet_port *port = calloc(1, sizeof *port);
    if (!port) {
        close(interface->device_fd);
        return -ENOMEM;
    }
    interface->own = port;
    interface->wait_fd = port->fd = interface->device_fd;
    port->xsk.fd = -1;
    port->bypasses = true;
    error = ss_transmit_init(&port->transmit);
    if (!error) error = configure(interface, port);
    if (error) {
        ss_interface_close(interface);
        return error;
    }
    struct stat status;
    interface->inode = fstat(port->fd, &status) == 0 ? status.st_ino : 0;
    open_xsk(interface, port);
    return 0;
}

static uint32_t receive(struct ss_interface *interface, uint32_t budget) {
    struct packet_port *port = interface->own;
    struct ss_ring_losses losses = {0};
    uint32_t taken = ss_ring_receive(&port->ring, port->fd, budget, ss_interface_deliver, interface, &losses);
    interface->counters.rx_oversize += losses.oversize;
    interface->counters.rx_dropped += losses.dropped;
    return taken + losses.oversize + losses.dropped;
}

static uint8_t *place(struct ss_interface *interface, uint32_t length) {
    return ss_transmit_place(&((struct packet_port *)interface->own)->transmit, length);
}

static bool add(struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    return ss_transmit_add(&((struct packet_port *)interface->own)->transmit, data, length);
}

/* Sends past the interface's queueing discipline, in fewer system calls than messages. Returns false if the queue holds runs,
 * or frames that do not fit there. */
static bool send_with_xsk(struct ss_interface *interface, struct packet_port *port, uint64_t now_ns) {
    const struct ss_transmit_queue *queue = &port->transmit;
    if (!ss_xsk_is_open(&port->xsk) || queue->frames > queue->count || !ss_xsk_has_space(&port->xsk, queue->count))
        return false;
    for (uint32_t i = 0; i < queue->count; i++)
        if (queue->run[i].bytes > port->xsk.chunk_size) return false;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        ss_xsk_queue(&port->xsk, queue->iov[i][1].iov_base, queue->run[i].bytes);
        bytes += queue->run[i].bytes;
    }
    bool sent = ss_xsk_flush(&port->xsk);
    uint32_t packets = queue->count - ss_xsk_queued(&port->xsk);
    interface->counters.tx_packets += packets;
    ss_departures_add(&port->xsk_departures, packets, packets, now_ns);
    if (sent)
        interface->counters.tx_bytes += bytes;
    else
        close_xsk(interface, port);
    ss_transmit_clear(&port->transmit);
    return true;
}

static void flush(struct ss_interface *interface, uint64_t now_ns) {
    struct packet_port *port = interface->own;
    if (!port->transmit.count || send_with_xsk(interface, port, now_ns)) return;
    struct ss_transmit_result result = ss_transmit_send(&port->transmit, port->fd);
    interface->counters.tx_packets += result.packets;
    interface->counters.tx_bytes += result.bytes;
    interface->counters.tx_dropped += result.dropped;
    ss_departures_add(&port->departures, result.packets, result.charge, now_ns);
    /* Sends frame by frame until the device's offloads are read again. */
    if (result.is_segmentation_refused) port->transmit.merges = interface->merges = false;
}

/* While a socket captures here frames are sent through the stack, otherwise through AF_XDP, past the taps. */
static void follow_tap(struct ss_interface *interface, struct packet_port *port, uint64_t now_ns) {
    if (interface->has_tap != port->bypasses) return;
    flush(interface, now_ns);
    port->bypasses = !interface->has_tap;
    (void)set_flag(port->fd, PACKET_QDISC_BYPASS, port->bypasses);
    if (interface->has_tap && ss_xsk_is_open(&port->xsk)) close_xsk(interface, port);
    open_xsk(interface, port);
}

static void update(struct ss_interface *interface, uint64_t now_ns, bool is_event) {
    struct packet_port *port = interface->own;
    follow_tap(interface, port, now_ns);
    if (is_event)
        open_xsk(interface, port);
    else
        retry_xsk(interface, port, now_ns);
    port->transmit.merges = interface->merges =
        interface->wants_runs && port->bypasses && ss_offloads_has_segmentation(port->fd, interface->ifname);
}

static void read_drops(struct ss_interface *interface) {
    const struct packet_port *port = interface->own;
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;
    if (port->ring.memory && getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
        interface->counters.rx_dropped += stats.tp_drops;
}

static int steer(struct ss_interface *interface, const struct ss_steering *steering) {
    return ss_fanout_steer(((struct packet_port *)interface->own)->fd, steering);
}

static struct ss_backlog backlog(struct ss_interface *interface, uint64_t now_ns) {
    struct packet_port *port = interface->own;
    int outstanding = 0;
    if (port->departures.count && ioctl(port->fd, SIOCOUTQ, &outstanding) < 0) outstanding = 0;
    struct ss_backlog stack = ss_departures_backlog(&port->departures, (uint64_t)outstanding, now_ns);
    if (!port->xsk_departures.count) return stack;
    struct ss_backlog xsk = ss_departures_backlog(&port->xsk_departures, ss_xsk_outstanding(&port->xsk), now_ns);
    return (struct ss_backlog){stack.packets + xsk.packets, stack.wait_ns > xsk.wait_ns ? stack.wait_ns : xsk.wait_ns};
}

const struct ss_port_kind ss_packet_port =
    SS_PORT_KIND("packet", .backlog = backlog, .update = update, .read_drops = read_drops, .steer = steer);
