/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "bursts.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT /* linux/udp.h */
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

/* Longer bursts would save little more, and come at once where the next queue is short. */
enum { BURST = 16, CONTROL_BYTES = 64, ECN = 3, ECN_CE = 3, DATAGRAM_MAX = 65536 };

struct bursts {
    int64_t packet_bytes;
    struct mmsghdr out[BURSTS_BATCH], in[BURSTS_IN];
    struct iovec out_pieces[BURSTS_BATCH], in_pieces[BURSTS_IN];
    struct sockaddr_in names[BURSTS_IN];
    uint8_t control[BURSTS_IN][CONTROL_BYTES] __attribute__((aligned(8)));
    union {
        uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr aligned;
    } segment; /* says how long the packets of a burst are */
    uint8_t *buffers;
};

struct bursts *bursts_create(int64_t packet_bytes) {
    struct bursts *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    int64_t room = DATAGRAM_MAX + packet_bytes; /* not all at the same place of the processor's caches */
    b->buffers = malloc((size_t)(BURSTS_IN * room));
    if (!b->buffers) {
        free(b);
        return NULL;
    }
    b->packet_bytes = packet_bytes;
    b->segment.aligned = (struct cmsghdr){CMSG_LEN(sizeof(uint16_t)), IPPROTO_UDP, UDP_SEGMENT};
    uint16_t segment = (uint16_t)packet_bytes;
    memcpy(CMSG_DATA(&b->segment.aligned), &segment, sizeof segment);
    for (int64_t i = 0; i < BURSTS_IN; i++) b->in_pieces[i] = (struct iovec){b->buffers + i * room, DATAGRAM_MAX};
    return b;
}

void bursts_destroy(struct bursts *b) {
    if (b) free(b->buffers);
    free(b);
}

struct burst_socket bursts_open(int fd) {
    int off = 0, on = 1;
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on); /* where there is none, packets come one by one */
    /* a burst needs checksums */
    return (struct burst_socket){fd, setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &off, sizeof off) ? 1 : BURST};
}

/* The answers of an ICMP error to an earlier packet, or a full queue of the interface: as good as a loss. */
static int is_loss(int error) {
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == ENOBUFS || error == EPERM ||
           error == EHOSTDOWN;
}

static int is_same(const struct sockaddr_in *a, const struct sockaddr_in *b) {
    return a->sin_addr.s_addr == b->sin_addr.s_addr && a->sin_port == b->sin_port;
}

/* Messages for packets [from, count), in bursts; how many. */
static unsigned pack(struct bursts *b, int most, const uint8_t *const *packets, const struct sockaddr_in *to, int64_t from,
                     int64_t count) {
    struct msghdr *last = NULL;
    unsigned messages = 0;
    for (int64_t i = from; i < count; i++) {
        b->out_pieces[i] = (struct iovec){(void *)(uintptr_t)packets[i], (size_t)b->packet_bytes};
        if (last && (int)last->msg_iovlen < most && (!to || is_same(&to[i - 1], &to[i]))) {
            last->msg_iovlen++;
            last->msg_control = b->segment.bytes;
            last->msg_controllen = sizeof b->segment;
            continue;
        }
        last = &b->out[messages++].msg_hdr;
        *last = (struct msghdr){.msg_iov = &b->out_pieces[i], .msg_iovlen = 1};
        if (to) {
            last->msg_name = (void *)(uintptr_t)&to[i];
            last->msg_namelen = sizeof *to;
        }
    }
    return messages;
}

/* Whether it was the burst that the kernel, or the device on the way, does not take; from here on packets go one by one,
 * and without checksums. */
static int gave_up_bursts(const struct bursts *b, struct burst_socket *s, int error) {
    if (b->out[0].msg_hdr.msg_iovlen < 2) return 0;
    if (error != EINVAL && error != EIO && error != EOPNOTSUPP && error != EMSGSIZE) return 0;
    int on = 1;
    s->most = 1;
    setsockopt(s->fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
    return 1;
}

int64_t bursts_send(struct bursts *b, struct burst_socket *s, const uint8_t *const *packets, const struct sockaddr_in *to,
                    int64_t count, int *error) {
    int64_t done = 0;
    *error = 0;
    while (done < count) {
        int took = sendmmsg(s->fd, b->out, pack(b, s->most, packets, to, done, count), 0);
        if (took >= 0) {
            for (int i = 0; i < took; i++) done += (int64_t)b->out[i].msg_hdr.msg_iovlen;
        } else if (is_loss(errno)) {
            done += (int64_t)b->out[0].msg_hdr.msg_iovlen;
        } else if (errno == EAGAIN) {
            return done;
        } else if (errno != EINTR && !gave_up_bursts(b, s, errno)) {
            *error = errno;
            return done;
        }
    }
    return done;
}

/* A datagram, or several of one length (the last one may be shorter) that the kernel put together. */
static void deliver(struct bursts *b, int at, bursts_take *take, void *context) {
    struct msghdr *head = &b->in[at].msg_hdr;
    const uint8_t *packet = b->in_pieces[at].iov_base;
    int64_t length = b->in[at].msg_len, segment = length;
    int marked = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) marked = (*CMSG_DATA(c) & ECN) == ECN_CE;
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int told;
            memcpy(&told, CMSG_DATA(c), sizeof told);
            segment = told;
        }
    }
    do {
        int64_t one = segment < length ? segment : length;
        int aligned = (uintptr_t)packet % sizeof(uint32_t) == 0; /* always, behind packets of the right length */
        take(context, packet, aligned ? one : 0, marked, &b->names[at]);
        packet += one;
        length -= one;
    } while (length > 0);
}

int64_t bursts_receive(struct bursts *b, struct burst_socket *s, bursts_take *take, void *context, int *error) {
    *error = 0;
    for (int i = 0; i < BURSTS_IN; i++)
        b->in[i].msg_hdr = (struct msghdr){.msg_iov = &b->in_pieces[i],
                                           .msg_iovlen = 1,
                                           .msg_control = b->control[i],
                                           .msg_controllen = CONTROL_BYTES,
                                           .msg_name = &b->names[i],
                                           .msg_namelen = sizeof b->names[i]};
    int count = recvmmsg(s->fd, b->in, BURSTS_IN, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR && !is_loss(errno)) *error = errno;
        return 0;
    }
    for (int i = 0; i < count; i++) deliver(b, i, take, context);
    return count;
}
