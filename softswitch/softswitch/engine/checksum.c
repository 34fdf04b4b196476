/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "checksum.h"

#include <string.h>

/* RFC 1071, without the final complement: a sum of 16-bit words in memory order, which is that of the field too. */
static uint16_t sum16(const uint8_t *data, uint32_t length) {
    uint64_t sum = 0;
    for (; length >= 4; data += 4, length -= 4) {
        uint32_t words;
        memcpy(&words, data, 4);
        sum += words;
    }
    if (length) {
        uint32_t rest = 0;
        memcpy(&rest, data, length);
        sum += rest;
    }
    sum = (sum & 0xffffffff) + (sum >> 32);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

void ss_complete_checksum(uint8_t *frame, uint32_t length, uint32_t start, uint32_t offset) {
    if (start > length || offset + 2u > length - start) return;
    uint16_t checksum = (uint16_t)~sum16(frame + start, length - start);
    if (checksum == 0) checksum = 0xffff;
    memcpy(frame + start + offset, &checksum, 2);
}
