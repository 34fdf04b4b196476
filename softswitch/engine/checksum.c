/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "checksum.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

static uint16_t read16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

/* RFC 1071, without the final complement. */
static uint32_t sum16(const uint8_t *data, uint32_t length, uint32_t sum) {
    uint64_t wide = sum;
    for (; length > 1; data += 2, length -= 2) wide += read16(data);
    if (length) wide += (uint32_t)data[0] << 8;
    while (wide >> 16) wide = (wide & 0xffff) + (wide >> 16);
    return (uint32_t)wide;
}

struct segment {
    uint8_t *start;
    uint32_t length;
    uint8_t protocol;
    uint32_t addresses; /* the sum of the pseudo header's addresses */
};

static int find_ipv4(uint8_t *ip, uint32_t length, struct segment *segment) {
    if (length < 20 || ip[0] >> 4 != 4) return 0;
    uint32_t header = (ip[0] & 15u) * 4, total = read16(ip + 2);
    if (header < 20 || total < header || total > length || read16(ip + 6) & 0x3fff) return 0;
    *segment = (struct segment){ip + header, total - header, ip[9], sum16(ip + 12, 8, 0)};
    return 1;
}

static int find_ipv6(uint8_t *ip, uint32_t length, struct segment *segment) {
    if (length < 40 || ip[0] >> 4 != 6) return 0;
    uint32_t payload = read16(ip + 4);
    if (payload > length - 40) return 0;
    *segment = (struct segment){ip + 40, payload, ip[6], sum16(ip + 8, 32, 0)};
    return 1;
}

static int find_segment(uint8_t *frame, uint32_t length, struct segment *segment) {
    uint32_t at = 2 * ETH_ALEN;
    while (at + 2 <= length && (read16(frame + at) == ETH_P_8021Q || read16(frame + at) == ETH_P_8021AD)) at += 4;
    if (at + 2 > length) return 0;
    uint16_t type = read16(frame + at);
    at += 2;
    if (type == ETH_P_IP) return find_ipv4(frame + at, length - at, segment);
    if (type == ETH_P_IPV6) return find_ipv6(frame + at, length - at, segment);
    return 0;
}

void complete_checksum(uint8_t *frame, uint32_t length) {
    struct segment segment;
    if (!find_segment(frame, length, &segment)) return;
    uint32_t offset = segment.protocol == IPPROTO_UDP ? 6 : segment.protocol == IPPROTO_TCP ? 16 : 0;
    if (offset == 0 || segment.length < offset + 2) return;
    uint8_t *field = segment.start + offset;
    memset(field, 0, 2);
    uint32_t sum = segment.addresses + segment.protocol + segment.length;
    uint16_t checksum = (uint16_t)~sum16(segment.start, segment.length, sum);
    if (checksum == 0 && segment.protocol == IPPROTO_UDP) checksum = 0xffff;
    field[0] = (uint8_t)(checksum >> 8);
    field[1] = (uint8_t)checksum;
}
