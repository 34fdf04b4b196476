/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "frame_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    SOCKET_BUFFER = 8 * 1024 * 1024,
    PENDING_MAX = 65536, /* frames that a socket buffer may hold */
};

struct ss_frame_socket {
    int fd;
    struct mmsghdr msg[SS_FRAME_SOCKET_BATCH];
    struct iovec iov[SS_FRAME_SOCKET_BATCH];
    uint8_t frames[SS_FRAME_SOCKET_BATCH][SS_FRAME_SOCKET_MTU] __attribute__((aligned(64)));
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

int ss_frame_socket_open(struct ss_frame_socket **out, int fd) {
    int error = check_kind(fd);
    if (error) return error;
    struct ss_frame_socket *socket = calloc(1, sizeof *socket);
    if (!socket) return -ENOMEM;
    socket->fd = fd;
    for (uint32_t i = 0; i < SS_FRAME_SOCKET_BATCH; i++) {
        socket->iov[i] = (struct iovec){socket->frames[i], SS_FRAME_SOCKET_MTU};
        socket->msg[i].msg_hdr = (struct msghdr){.msg_iov = &socket->iov[i], .msg_iovlen = 1};
    }
    enlarge_send_buffer(fd);
    drop_pending(fd);
    *out = socket;
    return 0;
}

void ss_frame_socket_free(struct ss_frame_socket *socket) { free(socket); }

uint32_t ss_frame_socket_receive(struct ss_frame_socket *socket, uint32_t budget) {
    uint32_t most = budget < SS_FRAME_SOCKET_BATCH ? budget : SS_FRAME_SOCKET_BATCH;
    int count = recvmmsg(socket->fd, socket->msg, most, MSG_DONTWAIT, NULL);
    return count > 0 ? (uint32_t)count : 0;
}

uint8_t *ss_frame_socket_frame(struct ss_frame_socket *socket, uint32_t at, uint32_t *length) {
    *length = socket->msg[at].msg_hdr.msg_flags & MSG_TRUNC ? 0 : socket->msg[at].msg_len;
    return socket->frames[at];
}
