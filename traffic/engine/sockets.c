/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT /* linux/udp.h */
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

/* A burst is cut into packets by the kernel or the device (UDP_SEGMENT): one way through the kernel for all of them. Longer
 * ones would save little more, and come at once where the next queue is short. */
enum { BATCH = 128, BURST = 16, IN_BATCH = 64, CONTROL_BYTES = 64, ECN = 3, ECN_CE = 3, DATAGRAM_MAX = 65536 };

struct sockets {
    int64_t count, stride, generation;
    int fds[NF_TREES_MAX];
    int burst[NF_TREES_MAX]; /* packets that may go at once */
    int error;
    struct nf_out out[BATCH]; /* of them, [sent, filled) wait for room in their socket */
    int64_t sent, filled;
    struct mmsghdr out_messages[BATCH], in_messages[IN_BATCH];
    struct iovec out_pieces[BATCH], in_pieces[IN_BATCH];
    uint8_t control[IN_BATCH][CONTROL_BYTES] __attribute__((aligned(8)));
    union {
        uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr aligned;
    } segment;        /* how long the packets of a burst are */
    uint8_t *buffers; /* each with room for as many packets as the kernel may have put together (UDP_GRO) */
};

struct sockets *sockets_create(void) { return calloc(1, sizeof(struct sockets)); }

int sockets_open(struct sockets *s, const int32_t *fds, int64_t count, int64_t lanes) {
    s->count = count;
    s->error = 0;
    s->sent = s->filled = 0;
    for (int64_t i = 0; i < count; i++) s->fds[i] = fds[i];
    s->stride = NF_HEADER_BYTES + 4 * lanes;
    s->segment.aligned = (struct cmsghdr){CMSG_LEN(sizeof(uint16_t)), IPPROTO_UDP, UDP_SEGMENT};
    uint16_t segment = (uint16_t)s->stride;
    memcpy(CMSG_DATA(&s->segment.aligned), &segment, sizeof segment);
    for (int64_t i = 0; i < count; i++) {
        int off = 0, on = 1;
        s->burst[i] = setsockopt(s->fds[i], SOL_SOCKET, SO_NO_CHECK, &off, sizeof off) ? 1 : BURST; /* a burst needs checksums */
        setsockopt(s->fds[i], IPPROTO_UDP, UDP_GRO, &on, sizeof on); /* where there is none, packets come one by one */
    }
    int64_t room = DATAGRAM_MAX + s->stride; /* not all at the same place of the processor's caches */
    free(s->buffers);
    s->buffers = malloc((size_t)(IN_BATCH * room));
    if (!s->buffers) return ENOMEM;
    for (int64_t i = 0; i < IN_BATCH; i++) {
        s->in_pieces[i] = (struct iovec){s->buffers + i * room, DATAGRAM_MAX};
        s->in_messages[i].msg_hdr = (struct msghdr){.msg_iov = &s->in_pieces[i], .msg_iovlen = 1};
    }
    return 0;
}

void sockets_close(struct sockets *s) {
    for (int64_t i = 0; i < s->count; i++) close(s->fds[i]);
    s->count = s->sent = s->filled = 0;
}

void sockets_destroy(struct sockets *s) {
    sockets_close(s);
    free(s->buffers);
    free(s);
}

/* The answers of an ICMP error to an earlier packet, or a full queue of the interface: as good as a loss. */
static int is_loss(int error) {
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == ENOBUFS || error == EPERM ||
           error == EHOSTDOWN;
}

/* A datagram, or several of one length (the last one may be shorter) that the kernel put together. */
static void deliver(const struct sockets *s, int64_t endpoint, const struct mmsghdr *message, struct nf_core *core, double now) {
    struct msghdr *head = (struct msghdr *)(uintptr_t)&message->msg_hdr;
    const uint8_t *packet = head->msg_iov->iov_base;
    int64_t length = message->msg_len, segment = length;
    int marked = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) marked = (*CMSG_DATA(c) & ECN) == ECN_CE;
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int told;
            memcpy(&told, CMSG_DATA(c), sizeof told);
            segment = told;
        }
    }
    if (segment != s->stride) return; /* no packet of the job's */
    for (; length >= segment; packet += segment, length -= segment)
        nf_core_receive(core, endpoint, packet, segment, marked, now);
}

static int64_t receive(struct sockets *s, int64_t endpoint, struct nf_core *core, double now) {
    for (int64_t i = 0; i < IN_BATCH; i++) {
        s->in_messages[i].msg_hdr.msg_control = s->control[i];
        s->in_messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    int count = recvmmsg(s->fds[endpoint], s->in_messages, IN_BATCH, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR && !is_loss(errno)) s->error = errno;
        return 0;
    }
    for (int i = 0; i < count; i++) deliver(s, endpoint, &s->in_messages[i], core, now);
    return count;
}

int64_t sockets_receive(struct sockets *s, struct nf_core *core, double now) {
    int64_t total = 0;
    for (int64_t i = 0; i < s->count; i++) total += receive(s, i, core, now);
    return total;
}

/* Messages for those of [sent, filled) that go to one endpoint, in bursts; how many. */
static unsigned pack(struct sockets *s, int64_t endpoint) {
    unsigned count = 0;
    for (int64_t i = s->sent; i < s->filled && s->out[i].endpoint == endpoint; i++) {
        struct msghdr *last = &s->out_messages[count ? count - 1 : 0].msg_hdr;
        s->out_pieces[i] = (struct iovec){(void *)(uintptr_t)s->out[i].packet, (size_t)s->stride};
        if (count && (int)last->msg_iovlen < s->burst[endpoint]) {
            last->msg_iovlen++;
            last->msg_control = s->segment.bytes;
            last->msg_controllen = sizeof s->segment;
        } else {
            s->out_messages[count++].msg_hdr = (struct msghdr){.msg_iov = &s->out_pieces[i], .msg_iovlen = 1};
        }
    }
    return count;
}

/* Whether it was the burst that the kernel, or the device on the way, does not take; from here on packets go one by one,
 * and without checksums. */
static int gave_up_bursts(struct sockets *s, int64_t endpoint, int error) {
    if (s->out_messages[0].msg_hdr.msg_iovlen < 2 || (error != EINVAL && error != EIO && error != EOPNOTSUPP && error != EMSGSIZE))
        return 0;
    int on = 1;
    s->burst[endpoint] = 1;
    setsockopt(s->fds[endpoint], SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
    return 1;
}

/* Sends [sent, filled); 0: a socket is full. */
static int flush(struct sockets *s) {
    while (s->sent < s->filled) {
        int64_t endpoint = s->out[s->sent].endpoint;
        unsigned count = pack(s, endpoint);
        int took = sendmmsg(s->fds[endpoint], s->out_messages, count, 0);
        if (took >= 0) {
            for (int i = 0; i < took; i++) s->sent += (int64_t)s->out_messages[i].msg_hdr.msg_iovlen;
        } else if (is_loss(errno)) {
            s->sent += (int64_t)s->out_messages[0].msg_hdr.msg_iovlen;
        } else if (errno == EAGAIN) {
            return 0;
        } else if (errno != EINTR && !gave_up_bursts(s, endpoint, errno)) {
            s->error = errno;
            return 0;
        }
    }
    return 1;
}

void sockets_send(struct sockets *s, struct nf_core *core, double now) {
    if (s->generation != nf_core_generation(core)) { /* what waits is of memory that is gone */
        s->generation = nf_core_generation(core);
        s->sent = s->filled = 0;
    }
    while (s->count && flush(s)) {
        s->sent = 0;
        s->filled = nf_core_send(core, s->out, BATCH, now);
        if (!s->filled) return;
    }
}

int sockets_blocked(const struct sockets *s) { return s->sent < s->filled; }

int sockets_poll(const struct sockets *s, struct pollfd *polled) {
    short events = (short)(sockets_blocked(s) ? POLLIN | POLLOUT : POLLIN);
    for (int64_t i = 0; i < s->count; i++) polled[i] = (struct pollfd){s->fds[i], events, 0};
    return (int)s->count;
}

int sockets_error(const struct sockets *s) { return s->error; }
