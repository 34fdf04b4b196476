/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "checksum.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "../runtime/bits.h"

uint16_t ss_checksum_fold(uint64_t sum) {
    sum = (sum & 0xffffffff) + (sum >> 32);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* Sums headers without vectors, which would wait until the bytes that were just written have left the processor. */
__attribute__((optimize("no-tree-vectorize"))) static uint64_t sum_header(const uint8_t *data, uint32_t length) {
    uint16_t last = 0;
    memcpy(&last, data + (length & ~1u), length & 1);
    return ss_word_sum(data, length & ~1u) + last;
}

uint16_t ss_checksum_sum(const uint8_t *data, uint32_t length) {
    if (length <= 64) return ss_checksum_fold(sum_header(data, length));
    uint64_t sum = 0, rest = 0;
    uint32_t count = length / 8;
    for (uint32_t i = 0; i < count;
         i++) { /* a plain loop: the compiler makes vectors of it, without moving halves between lanes */
        uint64_t words;
        memcpy(&words, data + 8 * i, 8);
        sum += (words & 0xffffffff) + (words >> 32);
    }
    memcpy(&rest, data + 8 * count, length % 8);
    return ss_checksum_fold(sum + (rest & 0xffffffff) + (rest >> 32));
}

void ss_complete_checksum(uint8_t *frame, uint32_t length, uint32_t start, uint32_t offset) {
    if (start > length || offset + 2u > length - start) return;
    uint16_t checksum = (uint16_t)~ss_checksum_sum(frame + start, length - start);
    if (checksum == 0) checksum = 0xffff;
    memcpy(frame + start + offset, &checksum, 2);
}

uint16_t ss_checksum_pseudo(const uint8_t *addresses, uint32_t address_bytes, uint32_t protocol, uint32_t length) {
    return ss_checksum_fold((uint64_t)ss_checksum_sum(addresses, address_bytes) + htonl(protocol) + htonl(length));
}

bool ss_checksum_is_right(const uint8_t *data, uint32_t length, uint16_t pseudo) {
    return ss_checksum_fold((uint64_t)ss_checksum_sum(data, length) + pseudo) == 0xffff;
}

void ss_checksum_set(uint8_t *data, uint32_t length, uint32_t offset, uint16_t pseudo) {
    memcpy(data + offset, &pseudo, sizeof pseudo);
    ss_complete_checksum(data, length, 0, offset);
}

void ss_checksum_set_ipv4(uint8_t *header, uint32_t length) {
    uint16_t checksum = 0;
    memcpy(header + 10, &checksum, 2);
    checksum = (uint16_t)~ss_checksum_sum(header, length);
    memcpy(header + 10, &checksum, 2);
}

static uint32_t word_at(const uint8_t *data) { return (uint32_t)data[0] << 8 | data[1]; }

/* Returns where the packet of layer 3 starts, behind two VLAN tags at most, and sets its EtherType. */
static uint32_t find_packet(const uint8_t *frame, uint32_t length, uint32_t *type) {
    uint32_t at = 2 * ETH_ALEN;
    for (int tags = 0; at + 2 <= length; tags++, at += 4) {
        *type = word_at(frame + at);
        if (tags == 2 || (*type != ETH_P_8021Q && *type != ETH_P_8021AD)) return at + 2;
    }
    *type = 0;
    return length;
}

void ss_complete_partial(uint8_t *frame, uint32_t length) {
    uint32_t type = 0, at = find_packet(frame, length, &type), header, bytes, protocol, addresses;
    const uint8_t *packet = frame + at;
    if (type == ETH_P_IP && at + 20 <= length) {
        header = (packet[0] & 15u) * 4, bytes = word_at(packet + 2), protocol = packet[9], addresses = 12;
        if (header < 20 || bytes < header || word_at(packet + 6) & 0x3fff) return; /* a fragment has no whole checksum */
        bytes -= header;
    } else if (type == ETH_P_IPV6 && at + 40 <= length) {
        header = 40, bytes = word_at(packet + 4), protocol = packet[6], addresses = 8;
    } else {
        return;
    }
    uint32_t start = at + header, field = protocol == IPPROTO_UDP ? 6 : 16;
    if ((protocol != IPPROTO_UDP && protocol != IPPROTO_TCP) || bytes < field + 2 || start + bytes > length) return;
    uint16_t pseudo = ss_checksum_pseudo(packet + addresses, type == ETH_P_IP ? 8 : 32, protocol, bytes);
    if (memcmp(frame + start + field, &pseudo, sizeof pseudo) == 0) ss_complete_checksum(frame, start + bytes, start, field);
}
