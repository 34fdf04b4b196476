/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "udp_batch.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../wire/header.h"

#ifndef UDP_SEGMENT /* linux/udp.h */
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Longer bursts would save little more, and may overflow a short queue. */
enum { BURST = 16, CONTROL_BYTES = 64, ECN = 3, ECN_CE = 3, DATAGRAM_MAX = 65536 };

/* This many ICMP errors are read before a send or receive is given up. */
enum { MAX_PENDING = 16 };

struct udp_batch {
    int64_t packet_bytes;
    struct mmsghdr out[NF_BATCH_OUT], in[NF_BATCH_IN];
    struct iovec out_iov[NF_BATCH_OUT], in_iov[NF_BATCH_IN];
    struct sockaddr_in names[NF_BATCH_IN];
    uint8_t control[NF_BATCH_IN][CONTROL_BYTES] __attribute__((aligned(8)));
    union {
        uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr aligned;
    } segment, short_segment; /* packet length of a segmented send, of whole packets and of headers */
    uint8_t *buffers;
};

/* The kernel changes the first `count` messages, which it filled. */
static void prepare_receive(struct udp_batch *b, int count) {
    for (int i = 0; i < count; i++)
        b->in[i].msg_hdr = (struct msghdr){.msg_iov = &b->in_iov[i],
                                           .msg_iovlen = 1,
                                           .msg_control = b->control[i],
                                           .msg_controllen = CONTROL_BYTES,
                                           .msg_name = &b->names[i],
                                           .msg_namelen = sizeof b->names[i]};
}

struct udp_batch *udp_batch_create(int64_t packet_bytes) {
    struct udp_batch *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    int64_t buffer_bytes = DATAGRAM_MAX + packet_bytes; /* buffers start at different cache sets */
    b->buffers = malloc((size_t)(NF_BATCH_IN * buffer_bytes));
    if (!b->buffers) {
        free(b);
        return NULL;
    }
    b->packet_bytes = packet_bytes;
    uint16_t segment = (uint16_t)packet_bytes, short_segment = NF_HEADER_BYTES;
    b->segment.aligned = b->short_segment.aligned = (struct cmsghdr){CMSG_LEN(sizeof(uint16_t)), IPPROTO_UDP, UDP_SEGMENT};
    memcpy(CMSG_DATA(&b->segment.aligned), &segment, sizeof segment);
    memcpy(CMSG_DATA(&b->short_segment.aligned), &short_segment, sizeof short_segment);
    for (int64_t i = 0; i < NF_BATCH_IN; i++) b->in_iov[i] = (struct iovec){b->buffers + i * buffer_bytes, DATAGRAM_MAX};
    prepare_receive(b, NF_BATCH_IN);
    return b;
}

void udp_batch_destroy(struct udp_batch *b) {
    if (b) free(b->buffers);
    free(b);
}

struct batch_socket batch_socket_open(int fd) {
    int off = 0, on = 1;
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on); /* without it packets are received one by one */
    /* Segmentation needs checksums. */
    return (struct batch_socket){fd, setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &off, sizeof off) ? 1 : BURST};
}

/* Linux makes these errors of ICMP messages (net/ipv4/icmp.c, udp.c), which any host can forge. The kernel reports each once,
 * in place of a later send or receive. */
static int is_icmp_error(int error) {
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENONET ||
           error == ENOPROTOOPT || error == EPROTO || error == EMSGSIZE || error == EOPNOTSUPP;
}

/* The packet is lost, as on any link: there is no route now, the interface is down or its queue full, a packet filter drops it,
 * or ICMP errors arrive faster than they can be read. The socket has not failed, because an ICMP error may be forged. */
static int is_loss(int error) { return is_icmp_error(error) || error == ENOBUFS || error == EPERM || error == ENETDOWN; }

/* The kernel or the device does not segment the message. */
static int is_segmentation_refused(int error) {
    return error == EINVAL || error == EIO || error == EOPNOTSUPP || error == EMSGSIZE;
}

static int is_same(const struct sockaddr_in *a, const struct sockaddr_in *b) {
    return a->sin_addr.s_addr == b->sin_addr.s_addr && a->sin_port == b->sin_port;
}

static int64_t slot_range(const uint8_t *packet) {
    return __builtin_bswap16(((const struct header *)packet)->slot) / NF_RUN_SLOTS;
}

/* Returns whether the kernel may send both as one. */
static int is_run(const uint8_t *const *packets, const int64_t *lengths, const struct sockaddr_in *to, int64_t i) {
    return lengths[i - 1] == lengths[i] && (!to || is_same(&to[i - 1], &to[i])) &&
           slot_range(packets[i - 1]) == slot_range(packets[i]);
}

/* Makes messages of packets [from, count); returns their number. */
static unsigned pack_messages(struct udp_batch *b, int max_packets, const uint8_t *const *packets, const int64_t *lengths,
                              const struct sockaddr_in *to, int64_t from, int64_t count) {
    struct msghdr *last = NULL;
    unsigned messages = 0;
    for (int64_t i = from; i < count; i++) {
        b->out_iov[i] = (struct iovec){(void *)(uintptr_t)packets[i], (size_t)lengths[i]};
        if (last && (int)last->msg_iovlen < max_packets && is_run(packets, lengths, to, i)) {
            last->msg_iovlen++;
            last->msg_control = lengths[i] == b->packet_bytes ? b->segment.bytes : b->short_segment.bytes;
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

/* From now on packets are sent one by one, without checksums. */
static void disable_segmentation(struct batch_socket *s) {
    int on = 1;
    s->max_packets = 1;
    setsockopt(s->fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
}

/* Calls sendmmsg; reads pending ICMP errors, up to MAX_PENDING in a row. */
static int send_messages(struct udp_batch *b, int fd, unsigned count, struct udp_batch_errors *errors) {
    int sent = sendmmsg(fd, b->out, count, 0);
    for (int pending = 0; sent < 0 && is_icmp_error(errno) && pending < MAX_PENDING; pending++) {
        errors->survived++;
        sent = sendmmsg(fd, b->out, count, 0);
    }
    return sent;
}

int64_t udp_batch_send(struct udp_batch *b, struct batch_socket *s, const uint8_t *const *packets, const int64_t *lengths,
                       const struct sockaddr_in *to, int64_t count, struct udp_batch_errors *errors) {
    int64_t done = 0;
    while (done < count) {
        unsigned messages = pack_messages(b, s->max_packets, packets, lengths, to, done, count);
        int sent = send_messages(b, s->fd, messages, errors);
        int64_t first_packets = (int64_t)b->out[0].msg_hdr.msg_iovlen;
        if (sent > 0) {
            for (int i = 0; i < sent; i++) done += (int64_t)b->out[i].msg_hdr.msg_iovlen;
        } else if (errno == EAGAIN || errno == EINTR) {
            break;
        } else if (first_packets > 1 && is_segmentation_refused(errno)) {
            disable_segmentation(s);
        } else if (is_loss(errno)) {
            errors->survived++;
            done += first_packets;
        } else {
            errors->fatal = errno;
            break;
        }
    }
    return done;
}

/* Takes a datagram, or several of one length (the last one may be shorter) that the kernel merged. */
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

/* Calls recvmmsg; reads pending ICMP errors, up to MAX_PENDING in a row. */
static int receive_messages(struct udp_batch *b, int fd, struct udp_batch_errors *errors) {
    int count = recvmmsg(fd, b->in, NF_BATCH_IN, MSG_DONTWAIT, NULL);
    for (int pending = 0; count < 0 && is_icmp_error(errno) && pending < MAX_PENDING; pending++) {
        errors->survived++;
        count = recvmmsg(fd, b->in, NF_BATCH_IN, MSG_DONTWAIT, NULL);
    }
    return count;
}

int64_t udp_batch_receive(struct udp_batch *b, struct batch_socket *s, on_datagram *take, void *context,
                          struct udp_batch_errors *errors) {
    int count = receive_messages(b, s->fd, errors);
    for (int i = 0; i < count; i++) deliver(b, i, take, context);
    prepare_receive(b, count);
    if (count >= 0) return count;
    if (is_loss(errno))
        errors->survived++;
    else if (errno != EAGAIN && errno != EINTR)
        errors->fatal = errno;
    return 0;
}
