/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "segments.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "checksum.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* linux/virtio_net.h, since 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum {
    SS_IPV4_BYTES = 20,
    SS_IPV6_BYTES = 40,
    SS_UDP_BYTES = 8,
    SS_TCP_BYTES = 20,
    HEADERS_MAX = ETH_HLEN + 2 * SS_VLAN_TAG + 60 + 60,
};
/* These are offsets in an IPv4 header. */
enum { SS_IP_LENGTH = 2, SS_IP_ID = 4, SS_IP_FRAGMENT = 6, SS_IP_PROTOCOL = 9, SS_IP_HEADER_SUM = 10, SS_IP_ADDRESSES = 12 };
enum { SS_IP6_LENGTH = 4, SS_IP6_NEXT_HEADER = 6, SS_IP6_ADDRESSES = 8 };
enum { SS_UDP_LENGTH = 4, SS_UDP_CHECKSUM = 6 };
enum { SS_TCP_SEQUENCE = 4, SS_TCP_DATA_OFFSET = 12, SS_TCP_FLAGS = 13, SS_TCP_CHECKSUM = 16 };
enum { SS_TCP_FIN = 0x01, SS_TCP_PSH = 0x08, SS_TCP_ACK = 0x10, SS_TCP_CWR = 0x80 };
enum { SS_IP_DF = 0x4000, SS_IPV4_PLAIN = 0x45, ROCE_PORT = 4791 };

static uint16_t load16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return ntohs(value);
}

static uint32_t load32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return ntohl(value);
}

static void store16(uint8_t *at, uint32_t value) {
    uint16_t big = htons((uint16_t)value);
    memcpy(at, &big, sizeof big);
}

static void store32(uint8_t *at, uint32_t value) {
    uint32_t big = htonl(value);
    memcpy(at, &big, sizeof big);
}

/* ---- merging ---- */

enum { SS_IP_AT = ETH_HLEN, SS_L4_AT = ETH_HLEN + SS_IPV4_BYTES };

/* Returns the bytes of the headers, or 0 for a frame that goes alone. */
static uint32_t header_bytes(const uint8_t *frame, uint32_t length, enum ss_run_kind *kind) {
    if (length <= SS_L4_AT + SS_UDP_BYTES || load16(frame + 12) != ETH_P_IP || frame[SS_IP_AT] != SS_IPV4_PLAIN) return 0;
    if (load16(frame + SS_IP_AT + SS_IP_LENGTH) != length - SS_IP_AT || load16(frame + SS_IP_AT + SS_IP_FRAGMENT) & ~SS_IP_DF)
        return 0;
    const uint8_t *l4 = frame + SS_L4_AT;
    if (frame[SS_IP_AT + SS_IP_PROTOCOL] == IPPROTO_UDP && load16(l4 + SS_UDP_LENGTH) == length - SS_L4_AT) {
        *kind = SS_RUN_UDP;
        return SS_L4_AT + SS_UDP_BYTES;
    }
    if (frame[SS_IP_AT + SS_IP_PROTOCOL] != IPPROTO_TCP || length <= SS_L4_AT + SS_TCP_BYTES) return 0;
    uint32_t tcp_bytes = (l4[SS_TCP_DATA_OFFSET] >> 4) * 4u;
    if (tcp_bytes < SS_TCP_BYTES || SS_L4_AT + tcp_bytes >= length || (l4[SS_TCP_FLAGS] & ~SS_TCP_PSH) != SS_TCP_ACK) return 0;
    *kind = SS_RUN_TCP;
    return SS_L4_AT + tcp_bytes;
}

static bool is_checksum_right(const uint8_t *frame, uint32_t length, enum ss_run_kind kind) {
    if (!ss_checksum_is_right(frame + SS_IP_AT, SS_IPV4_BYTES, 0)) return false;
    if (kind == SS_RUN_UDP && load16(frame + SS_L4_AT + SS_UDP_CHECKSUM) == 0) return true;
    uint32_t protocol = kind == SS_RUN_UDP ? IPPROTO_UDP : IPPROTO_TCP;
    uint16_t pseudo = ss_checksum_pseudo(frame + SS_IP_AT + SS_IP_ADDRESSES, 8, protocol, length - SS_L4_AT);
    return ss_checksum_is_right(frame + SS_L4_AT, length - SS_L4_AT, pseudo);
}

struct ss_run ss_run_of(const uint8_t *frame, uint32_t length) {
    struct ss_run run = {.frames = 1, .bytes = length};
    run.header_bytes = header_bytes(frame, length, &run.kind);
    if (!run.header_bytes || !is_checksum_right(frame, length, run.kind)) return (struct ss_run){.frames = 1, .bytes = length};
    run.payload_bytes = length - run.header_bytes;
    run.is_closed = run.kind == SS_RUN_TCP && frame[SS_L4_AT + SS_TCP_FLAGS] & SS_TCP_PSH;
    return run;
}

/* Returns whether the identification may follow. Datagrams that may not be fragmented may have any; others need the one that
 * the kernel will give them. So do those of RoCEv2, whose invariant CRC covers it. */
static bool is_next_id(const struct ss_run *run, const uint8_t *head, const uint8_t *frame) {
    bool is_roce = run->kind == SS_RUN_UDP && load16(head + SS_L4_AT + 2) == ROCE_PORT;
    if (load16(head + SS_IP_AT + SS_IP_FRAGMENT) & SS_IP_DF && !is_roce) return true;
    return load16(frame + SS_IP_AT + SS_IP_ID) == (uint16_t)(load16(head + SS_IP_AT + SS_IP_ID) + run->frames);
}

static bool is_next_tcp(const struct ss_run *run, const uint8_t *head, const uint8_t *frame) {
    const uint8_t *first = head + SS_L4_AT, *next = frame + SS_L4_AT;
    if (load32(next + SS_TCP_SEQUENCE) != load32(first + SS_TCP_SEQUENCE) + run->frames * run->payload_bytes) return false;
    /* The comparison covers acknowledgment and data offset, then window, urgent pointer and options. */
    return memcmp(first + 8, next + 8, 5) == 0 && memcmp(first + 14, next + 14, 2) == 0 &&
           memcmp(first + 18, next + 18, run->header_bytes - SS_L4_AT - 18) == 0;
}

bool ss_run_continues(const struct ss_run *run, const uint8_t *head, const uint8_t *frame, uint32_t length) {
    if (run->kind == SS_RUN_NONE || run->is_closed || run->frames >= SS_RUN_FRAMES) return false;
    if (length > run->header_bytes + run->payload_bytes || run->bytes + length > UINT16_MAX) return false;
    /* The comparison covers addresses and type of Ethernet; version and class; fragment bits, time to live and protocol;
     * addresses and ports. */
    if (length <= run->header_bytes || memcmp(head, frame, SS_IP_AT + 2) != 0 ||
        memcmp(head + SS_IP_AT + SS_IP_FRAGMENT, frame + SS_IP_AT + SS_IP_FRAGMENT, 4) != 0 ||
        memcmp(head + SS_IP_AT + SS_IP_ADDRESSES, frame + SS_IP_AT + SS_IP_ADDRESSES, 12) != 0)
        return false;
    enum ss_run_kind kind = SS_RUN_NONE;
    if (header_bytes(frame, length, &kind) != run->header_bytes || kind != run->kind || !is_next_id(run, head, frame))
        return false;
    if (kind == SS_RUN_TCP && !is_next_tcp(run, head, frame)) return false;
    if (kind == SS_RUN_UDP && !load16(head + SS_L4_AT + SS_UDP_CHECKSUM) != !load16(frame + SS_L4_AT + SS_UDP_CHECKSUM))
        return false;
    return is_checksum_right(frame, length, kind);
}

void ss_run_append(struct ss_run *run, uint8_t *head, const uint8_t *frame, uint32_t length) {
    uint32_t payload = length - run->header_bytes;
    run->frames++;
    run->bytes += payload;
    run->is_closed = payload < run->payload_bytes;
    if (run->kind == SS_RUN_TCP &&
        frame[SS_L4_AT + SS_TCP_FLAGS] & SS_TCP_PSH) { /* the kernel sets it in the last segment only */
        head[SS_L4_AT + SS_TCP_FLAGS] |= SS_TCP_PSH;
        run->is_closed = true;
    }
}

struct virtio_net_hdr ss_run_finish(const struct ss_run *run, uint8_t *head) {
    if (run->frames == 1) return (struct virtio_net_hdr){0};
    bool is_udp = run->kind == SS_RUN_UDP;
    uint32_t l4_bytes = run->bytes - SS_L4_AT, offset = is_udp ? SS_UDP_CHECKSUM : SS_TCP_CHECKSUM;
    store16(head + SS_IP_AT + SS_IP_LENGTH, run->bytes - SS_IP_AT);
    ss_checksum_set_ipv4(head + SS_IP_AT, SS_IPV4_BYTES);
    if (is_udp) store16(head + SS_L4_AT + SS_UDP_LENGTH, l4_bytes);
    uint16_t pseudo = ss_checksum_pseudo(head + SS_IP_AT + SS_IP_ADDRESSES, 8, is_udp ? IPPROTO_UDP : IPPROTO_TCP, l4_bytes);
    memcpy(head + SS_L4_AT + offset, &pseudo, sizeof pseudo);
    return (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = is_udp ? VIRTIO_NET_HDR_GSO_UDP_L4 : VIRTIO_NET_HDR_GSO_TCPV4,
        .hdr_len = (uint16_t)run->header_bytes,
        .gso_size = (uint16_t)run->payload_bytes,
        .csum_start = SS_L4_AT,
        .csum_offset = (uint16_t)offset,
    };
}

/* ---- cutting ---- */

/* The places of a super-frame's headers. */
struct layout {
    uint32_t ip, l4, payload; /* offsets in the frame */
    bool is_ipv6, is_tcp, has_checksum;
    uint16_t pseudo_sum; /* without the length */
    uint16_t id, ip_sum; /* of IPv4: the first segment's; the header's without length, identification and checksum */
};

static bool find_network(const uint8_t *frame, uint32_t length, struct layout *at) {
    at->ip = ETH_HLEN;
    for (int tags = 0; tags < 2 && length >= at->ip + SS_VLAN_TAG; tags++) {
        uint16_t type = load16(frame + at->ip - 2);
        if (type != ETH_P_8021Q && type != ETH_P_8021AD) break;
        at->ip += SS_VLAN_TAG;
    }
    if (length < at->ip + SS_IPV4_BYTES) return false;
    at->is_ipv6 = load16(frame + at->ip - 2) == ETH_P_IPV6;
    if (!at->is_ipv6 && load16(frame + at->ip - 2) != ETH_P_IP) return false;
    uint32_t protocol = frame[at->ip + (at->is_ipv6 ? SS_IP6_NEXT_HEADER : SS_IP_PROTOCOL)];
    at->l4 = at->ip + (at->is_ipv6 ? SS_IPV6_BYTES : (frame[at->ip] & 15) * 4u);
    at->is_tcp = protocol == IPPROTO_TCP;
    return at->l4 >= at->ip + SS_IPV4_BYTES && (at->is_tcp || protocol == IPPROTO_UDP);
}

static bool find_layout(const uint8_t *frame, uint32_t length, const struct virtio_net_hdr *offload, struct layout *at) {
    if (!offload->gso_size) return false;
    if (!find_network(frame, length, at) || length < at->l4 + (at->is_tcp ? SS_TCP_BYTES : SS_UDP_BYTES)) return false;
    uint32_t expected = !at->is_tcp   ? VIRTIO_NET_HDR_GSO_UDP_L4
                        : at->is_ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6
                                      : VIRTIO_NET_HDR_GSO_TCPV4;
    uint32_t l4_bytes = at->is_tcp ? (frame[at->l4 + SS_TCP_DATA_OFFSET] >> 4) * 4u : SS_UDP_BYTES;
    at->payload = at->l4 + l4_bytes;
    at->has_checksum = at->is_tcp || at->is_ipv6 || load16(frame + at->l4 + SS_UDP_CHECKSUM) != 0;
    const uint8_t *addresses = frame + at->ip + (at->is_ipv6 ? SS_IP6_ADDRESSES : SS_IP_ADDRESSES);
    at->pseudo_sum = ss_checksum_pseudo(addresses, at->is_ipv6 ? 32 : 8, at->is_tcp ? IPPROTO_TCP : IPPROTO_UDP, 0);
    return (uint8_t)(offload->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == expected && (!at->is_tcp || l4_bytes >= SS_TCP_BYTES) &&
           at->payload < length && at->payload <= HEADERS_MAX;
}

/* Sums the header once, so that a segment's checksum takes no second look at bytes that were just written. */
static void sum_ipv4(uint8_t *ip, struct layout *at) {
    at->id = load16(ip + SS_IP_ID);
    store16(ip + SS_IP_LENGTH, 0);
    store16(ip + SS_IP_ID, 0);
    store16(ip + SS_IP_HEADER_SUM, 0);
    at->ip_sum = ss_checksum_sum(ip, at->l4 - at->ip);
}

static void set_network(uint8_t *frame, uint32_t length, uint32_t number, const struct layout *at) {
    uint8_t *ip = frame + at->ip;
    if (at->is_ipv6) {
        store16(ip + SS_IP6_LENGTH, length - at->ip - SS_IPV6_BYTES);
        return;
    }
    uint16_t bytes = htons((uint16_t)(length - at->ip)), id = htons((uint16_t)(at->id + number));
    uint16_t checksum = (uint16_t)~ss_checksum_fold((uint64_t)at->ip_sum + bytes + id);
    memcpy(ip + SS_IP_LENGTH, &bytes, sizeof bytes);
    memcpy(ip + SS_IP_ID, &id, sizeof id);
    memcpy(ip + SS_IP_HEADER_SUM, &checksum, sizeof checksum);
}

static void set_transport(uint8_t *frame, uint32_t length, uint32_t sent_bytes, bool is_last, const struct layout *at) {
    uint8_t *l4 = frame + at->l4;
    uint32_t l4_bytes = length - at->l4;
    if (at->is_tcp) {
        store32(l4 + SS_TCP_SEQUENCE, load32(l4 + SS_TCP_SEQUENCE) + sent_bytes);
        if (sent_bytes) l4[SS_TCP_FLAGS] &= (uint8_t)~SS_TCP_CWR;
        if (!is_last) l4[SS_TCP_FLAGS] &= (uint8_t)~(SS_TCP_FIN | SS_TCP_PSH);
    } else {
        store16(l4 + SS_UDP_LENGTH, l4_bytes);
    }
    if (!at->has_checksum) return;
    uint16_t pseudo = ss_checksum_fold((uint64_t)at->pseudo_sum + htonl(l4_bytes));
    ss_checksum_set(l4, l4_bytes, at->is_tcp ? SS_TCP_CHECKSUM : SS_UDP_CHECKSUM, pseudo);
}

/* Another processor has just written the frame: a segment takes as long to load as to process. */
static void prefetch(const uint8_t *frame, uint32_t from, uint32_t to) {
    for (; from < to; from += 64) __builtin_prefetch(frame + from);
}

uint32_t ss_segments_cut(uint8_t *frame, uint32_t length, const struct virtio_net_hdr *offload, ss_segment_sink *sink,
                         void *context) {
    struct layout at = {0};
    uint8_t headers[HEADERS_MAX];
    uint32_t size = offload->gso_size, frames = 0;
    if (!find_layout(frame, length, offload, &at)) return 0;
    memcpy(headers, frame, at.payload);
    if (!at.is_ipv6) sum_ipv4(headers + at.ip, &at);
    for (uint32_t sent = 0, total = length - at.payload; sent < total; sent += size) {
        uint32_t payload = total - sent < size ? total - sent : size;
        uint32_t ahead = at.payload + sent + 2 * size;
        prefetch(frame, ahead, ahead + size < length ? ahead + size : length);
        uint8_t *segment = frame + sent; /* its headers take the place of the end of the one before, which is done with */
        memcpy(segment, headers, at.payload);
        set_network(segment, at.payload + payload, frames, &at);
        set_transport(segment, at.payload + payload, sent, sent + payload == total, &at);
        sink(context, segment, at.payload + payload);
        frames++;
    }
    return frames;
}

uint32_t ss_segments_count(const uint8_t *frame, uint32_t captured, uint32_t length, const struct virtio_net_hdr *offload) {
    struct layout at = {0};
    if (!find_layout(frame, captured, offload, &at)) return 1;
    return (length - at.payload + offload->gso_size - 1) / offload->gso_size;
}
