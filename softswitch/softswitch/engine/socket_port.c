/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The kind of port without a network interface: a Unix datagram socket, one frame a datagram. Its peer is another port or a host,
 * so a network of switches needs neither rights nor namespaces. Only the first thread receives from it. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interface.h"
#include "transmit_queue.h"

enum {
    FRAMES = 32, /* received at once */
    FRAME_MAX = 16384, /* bytes */
    SOCKET_BUFFER = 8 * 1024 * 1024,
    PENDING_MAX = 65536, /* frames that a socket buffer may hold */
};

struct socket_port {
    int fd;
    struct ss_transmit_queue transmit;
    struct mmsghdr msg[FRAMES];
    struct iovec iov[FRAMES];
    uint8_t frames[FRAMES][FRAME_MAX] __attribute__((aligned(64)));
};

static int check_kind(int fd) {
    int domain = 0, type = 0;
    socklen_t size = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0) return -errno;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0) return -errno;
    return domain == AF_UNIX && type == SOCK_DGRAM ? 0 : -EPROTOTYPE;
}

/* Discards frames that were sent while no switch was at this end of the link. */
static void drop_pending(int fd) {
    char byte;
    for (int i = 0; i < PENDING_MAX && recv(fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0; i++) {
    }
}

/* Allows the sender more frames in flight: the kernel counts a datagram until it is received. */
static void enlarge_send_buffer(int fd) {
    int size = SOCKET_BUFFER;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static void close_port(struct ss_interface *interface) {
    struct socket_port *port = interface->own;
    close(port->fd);
    interface->counters.tx_dropped += port->transmit.frames;
    ss_transmit_free(&port->transmit);
    free(port);
}

static int open_port(struct ss_interface *interface) {
    int error = check_kind(interface->given_fd);
    if (error) return error;
    struct socket_port *port;
    if (posix_memalign((void **)&port, 64, sizeof *port)) return -ENOMEM;
    if ((port->fd = fcntl(interface->given_fd, F_DUPFD_CLOEXEC, 0)) < 0 || ss_transmit_init(&port->transmit)) {
        error = -errno;
        if (port->fd >= 0) close(port->fd);
        free(port);
        return error;
    }
    interface->own = port;
    for (uint32_t i = 0; i < FRAMES; i++) {
        port->iov[i] = (struct iovec){port->frames[i], FRAME_MAX};
        port->msg[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &port->iov[i], .msg_iovlen = 1}};
    }
    ss_transmit_omit_headers(&port->transmit);
    enlarge_send_buffer(port->fd);
    drop_pending(port->fd);
    interface->longest = SS_SUPER_FRAME;
    if (!interface->thread) interface->wait_fd = port->fd;
    return 0;
}

static uint32_t receive(struct ss_interface *interface, uint32_t budget) {
    struct socket_port *port = interface->own;
    int count = recvmmsg(port->fd, port->msg, budget < FRAMES ? budget : FRAMES, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        if (port->msg[i].msg_hdr.msg_flags & MSG_TRUNC) {
            interface->counters.rx_oversize++;
            continue;
        }
        ss_interface_deliver(interface, port->frames[i], port->msg[i].msg_len);
    }
    return count > 0 ? (uint32_t)count : 0;
}

static uint8_t *place(struct ss_interface *interface, uint32_t length) {
    return ss_transmit_place(&((struct socket_port *)interface->own)->transmit, length);
}

static bool add(struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    return ss_transmit_add(&((struct socket_port *)interface->own)->transmit, data, length);
}

static void flush(struct ss_interface *interface, uint64_t now_ns) {
    (void)now_ns;
    struct socket_port *port = interface->own;
    if (!port->transmit.count) return;
    struct ss_transmit_result result = ss_transmit_send(&port->transmit, port->fd);
    interface->counters.tx_packets += result.packets;
    interface->counters.tx_bytes += result.bytes;
    interface->counters.tx_dropped += result.dropped;
}

const struct ss_port_kind ss_socket_port = SS_PORT_KIND("socket", );
