/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    QUEUE = 1000, /* frames, as the queue of a host's interface */
    ETHERNET = 14,
    IPV4 = 20,
    DATAGRAM = 8,
    HEADERS = ETHERNET + IPV4 + DATAGRAM,
    PAD = 2, /* so that packets are aligned */
    IPV4_TYPE = 0x0800,
    VERSION_AND_LENGTH = 0x45,
    ECN = 3,
    ECN_ECT0 = 2,
    ECN_CE = 3,
    DO_NOT_FRAGMENT = 0x4000,
    FRAGMENT = 0x3fff, /* more fragments, or an offset */
    TTL = 64,
    SEND_BATCH = 64,
    SEND_BUFFER = 4 << 20,
    PENDING_MAX = 1 << 16, /* frames that a socket buffer may hold */
};

/* An idle link sends the frames of this many seconds at once, and at least this many frames, as the token buckets of networks
 * do. */
static const double BURST_S = 2e-3;
static const double BURST_FRAMES = 3;

struct link {
    int fd, is_full;
    uint16_t port;
    uint32_t address;
    uint8_t macs[12]; /* destination, source */
    int64_t frame_bytes, stride; /* of the longest frame */
    double bytes_per_s, burst, tokens, counted_at;
    uint8_t *queue, *received;
    int64_t first, waiting;
    struct mmsghdr out[SEND_BATCH], in[NF_BATCH_IN];
    struct iovec out_iov[SEND_BATCH], in_iov[NF_BATCH_IN];
};

static void write_mac(uint8_t *at, int64_t mac) {
    for (int i = 0; i < 6; i++) at[i] = (uint8_t)(mac >> (40 - 8 * i));
}

static void write16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void write32(uint8_t *at, uint32_t value) {
    write16(at, value >> 16);
    write16(at + 2, value);
}

static uint32_t read16(const uint8_t *at) { return (uint32_t)(at[0] << 8 | at[1]); }

static uint32_t read32(const uint8_t *at) { return read16(at) << 16 | read16(at + 2); }

/* Adds to a ones' complement sum (RFC 1071). */
static uint32_t add_words(uint32_t sum, const uint8_t *data, int64_t length) {
    for (; length > 1; data += 2, length -= 2) sum += read16(data);
    return length ? sum + ((uint32_t)*data << 8) : sum;
}

static uint32_t folded(uint32_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* Discards frames that an earlier process with the link has left. */
static void drop_pending(int fd) {
    char byte;
    for (int i = 0; i < PENDING_MAX && recv(fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0; i++) {
    }
}

struct link *link_open(const struct nf_link_end *end, int64_t port, int64_t packet_bytes) {
    struct link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    int64_t frame_bytes = HEADERS + packet_bytes;
    *l = (struct link){.fd = (int)end->fd,
                       .port = (uint16_t)port,
                       .address = (uint32_t)end->address,
                       .frame_bytes = frame_bytes,
                       .stride = (PAD + frame_bytes + 1 + 7) & ~(int64_t)7, /* 1: longer frames show */
                       .bytes_per_s = end->rate_bps / 8};
    l->burst = fmax(BURST_FRAMES * (double)frame_bytes, BURST_S * l->bytes_per_s);
    l->tokens = l->burst;
    write_mac(l->macs, end->gateway_mac);
    write_mac(l->macs + 6, end->mac);
    l->queue = malloc((size_t)(QUEUE * l->stride));
    l->received = malloc((size_t)(NF_BATCH_IN * l->stride));
    if (!l->queue || !l->received) {
        link_close(l);
        return NULL;
    }
    for (int64_t i = 0; i < NF_BATCH_IN; i++) {
        l->in_iov[i] = (struct iovec){l->received + i * l->stride + PAD, (size_t)(frame_bytes + 1)};
        l->in[i].msg_hdr = (struct msghdr){.msg_iov = &l->in_iov[i], .msg_iovlen = 1};
    }
    drop_pending(l->fd);
    int size = SEND_BUFFER;
    if (setsockopt(l->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size))
        (void)setsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return l;
}

void link_close(struct link *l) {
    if (!l) return;
    free(l->queue);
    free(l->received);
    free(l);
}

int link_fd(const struct link *l) { return l->fd; }

static uint8_t *frame_at(const struct link *l, int64_t place) {
    return l->queue + (l->first + place) % QUEUE * l->stride + PAD;
}

static void write_frame(struct link *l, uint8_t *frame, const uint8_t *packet, int64_t length, const struct sockaddr_in *to) {
    uint8_t *ip = frame + ETHERNET, *udp = ip + IPV4;
    memcpy(frame, l->macs, sizeof l->macs);
    write16(frame + sizeof l->macs, IPV4_TYPE);
    ip[0] = VERSION_AND_LENGTH;
    ip[1] = ECN_ECT0;
    write16(ip + 2, (uint32_t)(IPV4 + DATAGRAM + length));
    write16(ip + 4, 0);
    write16(ip + 6, DO_NOT_FRAGMENT);
    ip[8] = TTL;
    ip[9] = IPPROTO_UDP;
    write16(ip + 10, 0);
    write32(ip + 12, l->address);
    write32(ip + 16, ntohl(to->sin_addr.s_addr));
    write16(ip + 10, ~folded(add_words(0, ip, IPV4)));
    write16(udp, l->port);
    write16(udp + 2, ntohs(to->sin_port));
    write16(udp + 4, (uint32_t)(DATAGRAM + length));
    write16(udp + 6, 0); /* no checksum: switches change packets */
    memcpy(udp + DATAGRAM, packet, (size_t)length);
}

/* Returns the bytes of a frame of ours. */
static int64_t length_of(const uint8_t *frame) { return ETHERNET + read16(frame + ETHERNET + 2); }

static int64_t enqueue(struct link *l, const uint8_t *const *packets, const int64_t *lengths, const struct sockaddr_in *to,
                       int64_t stride, int64_t count) {
    int64_t done = 0;
    for (; done < count && l->waiting < QUEUE; done++)
        write_frame(l, frame_at(l, l->waiting++), packets[done], lengths[done], &to[done * stride]);
    return done;
}

static void count_tokens(struct link *l, double now) {
    if (now > l->counted_at) l->tokens = fmin(l->burst, l->tokens + (now - l->counted_at) * l->bytes_per_s);
    l->counted_at = now;
}

int64_t link_send(struct link *l, const uint8_t *const *packets, const int64_t *lengths, const struct sockaddr_in *to,
                  int64_t count, double now) {
    count_tokens(l, now);
    return enqueue(l, packets, lengths, to, 1, count);
}

int64_t link_send_to_one(struct link *l, const uint8_t *const *packets, const int64_t *lengths, const struct sockaddr_in *to,
                         int64_t count, double now) {
    count_tokens(l, now);
    return enqueue(l, packets, lengths, to, 0, count);
}

/* Makes messages of the frames that have tokens; returns their number. */
static unsigned pack_due(struct link *l) {
    unsigned count = 0;
    double tokens = l->tokens;
    for (; count < SEND_BATCH && (int64_t)count < l->waiting && tokens >= (double)l->frame_bytes; count++) {
        uint8_t *frame = frame_at(l, count);
        l->out_iov[count] = (struct iovec){frame, (size_t)length_of(frame)};
        l->out[count].msg_hdr = (struct msghdr){.msg_iov = &l->out_iov[count], .msg_iovlen = 1};
        tokens -= (double)length_of(frame);
    }
    return count;
}

static void dequeue(struct link *l, int64_t count) {
    for (int64_t i = 0; i < count; i++) l->tokens -= (double)length_of(frame_at(l, i));
    l->first = (l->first + count) % QUEUE;
    l->waiting -= count;
}

/* Returns whether the frame is lost: there is no switch at the other end, or its socket is full by the kernel's count. */
static int is_loss(int error) { return error == ENOBUFS || error == ECONNREFUSED || error == ECONNRESET || error == ENOTCONN; }

void link_flush(struct link *l, double now, struct udp_batch_errors *errors) {
    count_tokens(l, now);
    l->is_full = 0;
    for (unsigned count; (count = pack_due(l)) != 0;) {
        int sent = sendmmsg(l->fd, l->out, count, MSG_DONTWAIT);
        if (sent > 0) {
            dequeue(l, sent);
        } else if (errno == EAGAIN) {
            l->is_full = 1;
            return;
        } else if (is_loss(errno)) {
            errors->survived++;
            dequeue(l, 1);
        } else if (errno != EINTR) {
            errors->fatal = errno;
            return;
        }
    }
}

double link_next_due(const struct link *l) {
    if (!l->waiting || l->is_full) return INFINITY;
    /* Several frames are read at once, because a wakeup for each costs more than the frame. */
    double wanted = fmin((double)(l->waiting * l->frame_bytes), l->burst / 4);
    double missing = fmax(wanted, (double)l->frame_bytes) - l->tokens;
    return missing > 0 ? l->counted_at + missing / l->bytes_per_s : l->counted_at;
}

int link_is_full(const struct link *l) { return l->is_full; }

/* Returns the length of the UDP payload, or -1 for a frame that has no packet to this port. */
static int64_t parse(const struct link *l, const uint8_t *frame, int64_t length, struct sockaddr_in *from) {
    const uint8_t *ip = frame + ETHERNET, *udp = ip + IPV4;
    if (length < HEADERS || memcmp(frame, l->macs + 6, 6) != 0 || read16(frame + 12) != IPV4_TYPE) return -1;
    if (ip[0] != VERSION_AND_LENGTH || ip[9] != IPPROTO_UDP || read16(ip + 6) & FRAGMENT) return -1;
    int64_t total = read16(ip + 2), datagram = read16(udp + 4);
    if (total > length - ETHERNET || datagram < DATAGRAM || datagram > total - IPV4) return -1;
    if (folded(add_words(0, ip, IPV4)) != 0xffff || read32(ip + 16) != l->address || read16(udp + 2) != l->port) return -1;
    uint32_t pseudo_header = add_words(IPPROTO_UDP + (uint32_t)datagram, ip + 12, 8);
    if (read16(udp + 6) && folded(add_words(pseudo_header, udp, datagram)) != 0xffff) return -1;
    *from = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)read16(udp))};
    from->sin_addr.s_addr = htonl(read32(ip + 12));
    return datagram - DATAGRAM;
}

int64_t link_receive(struct link *l, on_datagram *take, void *context, struct udp_batch_errors *errors) {
    int count = recvmmsg(l->fd, l->in, NF_BATCH_IN, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (is_loss(errno))
            errors->survived++;
        else if (errno != EAGAIN && errno != EINTR)
            errors->fatal = errno;
        return 0;
    }
    for (int i = 0; i < count; i++) {
        const uint8_t *frame = l->in_iov[i].iov_base;
        struct sockaddr_in from;
        int64_t length = parse(l, frame, l->in[i].msg_len, &from);
        if (length >= 0) take(context, frame + HEADERS, length, (frame[ETHERNET + 1] & ECN) == ECN_CE, &from);
    }
    return count;
}
