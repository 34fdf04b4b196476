/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "checksum.h"

#include <arpa/inet.h>
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
