/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 128, CONTROL_BYTES = 32, ECN = 3, ECN_CE = 3 };

struct sockets {
    int64_t count, stride, generation;
    int fds[NF_TREES_MAX];
    int error;
    struct nf_out out[BATCH]; /* of them, [sent, filled) wait for room in their socket */
    int64_t sent, filled;
    struct mmsghdr out_messages[BATCH], in_messages[BATCH];
    struct iovec out_pieces[BATCH], in_pieces[BATCH];
    uint8_t control[BATCH][CONTROL_BYTES] __attribute__((aligned(8)));
    uint8_t *buffers; /* each a word longer than a packet, so that longer ones show */
};

struct sockets *sockets_create(void) { return calloc(1, sizeof(struct sockets)); }

int sockets_open(struct sockets *s, const int32_t *fds, int64_t count, int64_t lanes) {
    s->count = count;
    s->error = 0;
    s->sent = s->filled = 0;
    for (int64_t i = 0; i < count; i++) s->fds[i] = fds[i];
    s->stride = NF_HEADER_BYTES + 4 * lanes;
    free(s->buffers);
    s->buffers = malloc((size_t)(BATCH * (s->stride + 4)));
    if (!s->buffers) return ENOMEM;
    for (int64_t i = 0; i < BATCH; i++) {
        s->in_pieces[i] = (struct iovec){s->buffers + i * (s->stride + 4), (size_t)s->stride + 4};
        s->in_messages[i].msg_hdr = (struct msghdr){.msg_iov = &s->in_pieces[i], .msg_iovlen = 1};
        s->out_messages[i].msg_hdr = (struct msghdr){.msg_iov = &s->out_pieces[i], .msg_iovlen = 1};
        s->out_pieces[i].iov_len = (size_t)s->stride;
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

static int is_marked(struct msghdr *message) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) return (*CMSG_DATA(c) & ECN) == ECN_CE;
    return 0;
}

static int64_t receive(struct sockets *s, int64_t endpoint, struct nf_core *core, double now) {
    for (int64_t i = 0; i < BATCH; i++) {
        s->in_messages[i].msg_hdr.msg_control = s->control[i];
        s->in_messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    int count = recvmmsg(s->fds[endpoint], s->in_messages, BATCH, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR && !is_loss(errno)) s->error = errno;
        return 0;
    }
    for (int i = 0; i < count; i++)
        nf_core_receive(core, endpoint, s->in_pieces[i].iov_base, s->in_messages[i].msg_len,
                        is_marked(&s->in_messages[i].msg_hdr), now);
    return count;
}

int64_t sockets_receive(struct sockets *s, struct nf_core *core, double now) {
    int64_t total = 0;
    for (int64_t i = 0; i < s->count; i++) total += receive(s, i, core, now);
    return total;
}

/* Sends [sent, filled); 0: a socket is full. */
static int flush(struct sockets *s) {
    while (s->sent < s->filled) {
        int64_t last = s->sent;
        while (last < s->filled && s->out[last].endpoint == s->out[s->sent].endpoint) last++;
        for (int64_t i = s->sent; i < last; i++) s->out_pieces[i].iov_base = (void *)(uintptr_t)s->out[i].packet;
        int took = sendmmsg(s->fds[s->out[s->sent].endpoint], s->out_messages + s->sent, (unsigned)(last - s->sent), 0);
        if (took >= 0) {
            s->sent += took;
        } else if (is_loss(errno)) {
            s->sent++;
        } else if (errno == EAGAIN) {
            return 0;
        } else if (errno != EINTR) {
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
