/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "udp_batch.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT /* linux/udp.h */
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

/* Longer bursts would save little more, and may overflow a short queue. */
enum { BURST = 16, CONTROL_BYTES = 64, ECN = 3, ECN_CE = 3, DATAGRAM_MAX = 65536 };

struct udp_batch {
    int64_t packet_bytes;
    struct mmsghdr out[UDP_BATCH_OUT], in[UDP_BATCH_IN];
    struct iovec out_iov[UDP_BATCH_OUT], in_iov[UDP_BATCH_IN];
    struct sockaddr_in names[UDP_BATCH_IN];
    uint8_t control[UDP_BATCH_IN][CONTROL_BYTES] __attribute__((aligned(8)));
    union {
        uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr aligned;
    } segment; /* packet length of a segmented send */
    uint8_t *buffers;
};

struct udp_batch *udp_batch_create(int64_t packet_bytes) {
    struct udp_batch *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    int64_t buffer_bytes = DATAGRAM_MAX + packet_bytes; /* buffers start at different cache sets */
    b->buffers = malloc((size_t)(UDP_BATCH_IN * buffer_bytes));
    if (!b->buffers) {
        free(b);
        return NULL;
    }
    b->packet_bytes = packet_bytes;
    b->segment.aligned = (struct cmsghdr){CMSG_LEN(sizeof(uint16_t)), IPPROTO_UDP, UDP_SEGMENT};
    uint16_t segment = (uint16_t)packet_bytes;
    memcpy(CMSG_DATA(&b->segment.aligned), &segment, sizeof segment);
    for (int64_t i = 0; i < UDP_BATCH_IN; i++) b->in_iov[i] = (struct iovec){b->buffers + i * buffer_bytes, DATAGRAM_MAX};
    return b;
}

void udp_batch_destroy(struct udp_batch *b) {
    if (b) free(b->buffers);
    free(b);
}

struct batch_socket batch_socket_open(int fd) {
    int off = 0, on = 1;
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on); /* without it packets are received one by one */
    /* segmentation needs checksums */
    return (struct batch_socket){fd, setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &off, sizeof off) ? 1 : BURST};
}

/* The errors that Linux makes of ICMP errors (net/ipv4/icmp.c, udp.c), which any host can forge. The kernel reports each
 * once, for an earlier packet. */
static int is_icmp_error(int error) {
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENONET ||
           error == ENOPROTOOPT || error == EPROTO || error == EMSGSIZE || error == EOPNOTSUPP;
}

/* A packet is lost: of an ICMP error, of a full interface queue, of a packet filter. */
static int is_loss(int error) { return is_icmp_error(error) || error == ENOBUFS || error == EPERM; }

/* The kernel or the device refuses the message. It refuses it again and again, which tells a refusal from an ICMP error of the
 * same number: after REFUSALS times. */
static int is_refusal(int error) { return error == EINVAL || error == EIO || error == EOPNOTSUPP || error == EMSGSIZE; }
enum { REFUSALS = 8 };

static int is_same(const struct sockaddr_in *a, const struct sockaddr_in *b) {
    return a->sin_addr.s_addr == b->sin_addr.s_addr && a->sin_port == b->sin_port;
}

/* Makes messages of packets [from, count); returns their number. */
static unsigned pack_messages(struct udp_batch *b, int max_packets, const uint8_t *const *packets, const struct sockaddr_in *to,
                              int64_t from, int64_t count) {
    struct msghdr *last = NULL;
    unsigned messages = 0;
    for (int64_t i = from; i < count; i++) {
        b->out_iov[i] = (struct iovec){(void *)(uintptr_t)packets[i], (size_t)b->packet_bytes};
        if (last && (int)last->msg_iovlen < max_packets && (!to || is_same(&to[i - 1], &to[i]))) {
            last->msg_iovlen++;
            last->msg_control = b->segment.bytes;
            last->msg_controllen = sizeof b->segment;
            continue;
        }
        last = &b->out[messages++].msg_hdr;
        *last = (struct msghdr){.msg_iov = &b->out_iov[i], .msg_iovlen = 1};
        if (to) {
            last->msg_name = (void *)(uintptr_t)&to[i];
            last->msg_namelen = sizeof *to;
        }
    }
    return messages;
}

/* From here on packets are sent one by one, without checksums. 0: the refused message was a single packet. */
static int disable_segmentation(const struct udp_batch *b, struct batch_socket *s) {
    if (b->out[0].msg_hdr.msg_iovlen < 2) return 0;
    int on = 1;
    s->max_packets = 1;
    setsockopt(s->fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
    return 1;
}

int64_t udp_batch_send(struct udp_batch *b, struct batch_socket *s, const uint8_t *const *packets, const struct sockaddr_in *to,
                       int64_t count, int *error) {
    int64_t done = 0;
    int refusals = 0;
    *error = 0;
    while (done < count) {
        int sent_messages = sendmmsg(s->fd, b->out, pack_messages(b, s->max_packets, packets, to, done, count), 0);
        int failed = sent_messages < 0 ? errno : 0;
        if (failed == EAGAIN) return done;
        if (failed == EINTR || (is_refusal(failed) && is_icmp_error(failed) && ++refusals < REFUSALS)) continue;
        if (is_refusal(failed) ? !disable_segmentation(b, s) : failed && !is_loss(failed)) {
            *error = failed;
            return done;
        }
        if (!failed)
            for (int i = 0; i < sent_messages; i++) done += (int64_t)b->out[i].msg_hdr.msg_iovlen;
        else if (!is_refusal(failed))
            done += (int64_t)b->out[0].msg_hdr.msg_iovlen;
        refusals = 0;
    }
    return done;
}

/* A datagram, or several of one length (the last one may be shorter) that the kernel merged. */
static void deliver(struct udp_batch *b, int at, on_datagram *take, void *context) {
    struct msghdr *head = &b->in[at].msg_hdr;
    const uint8_t *packet = b->in_iov[at].iov_base;
    int64_t length = b->in[at].msg_len, segment = length;
    int marked = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) marked = (*CMSG_DATA(c) & ECN) == ECN_CE;
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int value;
            memcpy(&value, CMSG_DATA(c), sizeof value);
            segment = value;
        }
    }
    do {
        int64_t one = segment < length ? segment : length;
        int aligned = (uintptr_t)packet % sizeof(uint32_t) == 0; /* always, after packets of the right length */
        take(context, packet, aligned ? one : 0, marked, &b->names[at]);
        packet += one;
        length -= one;
    } while (length > 0);
}

int64_t udp_batch_receive(struct udp_batch *b, struct batch_socket *s, on_datagram *take, void *context, int *error) {
    *error = 0;
    for (int i = 0; i < UDP_BATCH_IN; i++)
        b->in[i].msg_hdr = (struct msghdr){.msg_iov = &b->in_iov[i],
                                           .msg_iovlen = 1,
                                           .msg_control = b->control[i],
                                           .msg_controllen = CONTROL_BYTES,
                                           .msg_name = &b->names[i],
                                           .msg_namelen = sizeof b->names[i]};
    int count = recvmmsg(s->fd, b->in, UDP_BATCH_IN, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR && !is_loss(errno)) *error = errno;
        return 0;
    }
    for (int i = 0; i < count; i++) deliver(b, i, take, context);
    return count;
}
