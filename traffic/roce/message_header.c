/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "message_header.h"

#include <arpa/inet.h>
#include <math.h>
#include <string.h>

enum { LANE_BITS = 30 }; /* of a histogram's lane: no sum of fields is saturated */

static size_t field_bits(size_t workers) {
    size_t bits = 1;
    while (((size_t)1 << bits) < workers + 1) bits++;
    return bits;
}

size_t nr_histogram_lanes(size_t workers) {
    size_t per_lane = LANE_BITS / field_bits(workers);
    return per_lane == 0 ? SIZE_MAX : (NR_BYTES + per_lane - 1) / per_lane;
}

size_t nr_header_blocks(size_t lanes, size_t workers) {
    return lanes <= NR_CHECK_LANES ? 0 : (lanes - NR_CHECK_LANES) / nr_histogram_lanes(workers);
}

/* 1 to 64, so that an own digit is never its n-fold. */
static uint32_t digit(uint64_t identity, int i) { return 1 + (uint32_t)(identity >> (8 * i) & 0x3f); }

static uint32_t lane_of(uint32_t number, bool floats) {
    float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return floats ? bits : htonl(number);
}

/* UINT64_MAX: none that a header has. */
static uint64_t number_of(uint32_t lane, bool floats) {
    float value;
    memcpy(&value, &lane, sizeof value);
    if (!floats) return ntohl(lane);
    return value >= 0 && value <= 1 << 24 && floorf(value) == value ? (uint64_t)value : UINT64_MAX;
}

void nr_write_check(uint32_t *header, uint64_t identity, bool floats) {
    for (int i = 0; i < NR_DIGITS; i++) {
        uint32_t d = digit(identity, i);
        header[2 * i] = lane_of(d, floats);
        header[2 * i + 1] = lane_of(d * d, floats);
    }
}

enum nr_check_result nr_read_check(const uint32_t *header, uint64_t identity, size_t workers, bool floats) {
    bool summed = true, raw = true;
    for (int i = 0; i < NR_DIGITS; i++) {
        uint64_t d = digit(identity, i), sum = number_of(header[2 * i], floats), squares = number_of(header[2 * i + 1], floats);
        summed = summed && sum == workers * d && squares == workers * d * d;
        raw = raw && sum == d && squares == d * d;
    }
    if (summed) return NR_SUMMED;
    return raw ? NR_NOT_SUMMED : NR_DIFFERENT;
}

static uint32_t *field_of(uint32_t *header, size_t block, size_t workers, int byte, size_t *shift) {
    size_t bits = field_bits(workers), per_lane = LANE_BITS / bits;
    *shift = bits * ((size_t)byte % per_lane);
    return header + NR_CHECK_LANES + block * nr_histogram_lanes(workers) + (size_t)byte / per_lane;
}

void nr_write_byte(uint32_t *header, size_t block, size_t workers, int byte) {
    size_t shift;
    uint32_t *lane = field_of(header, block, workers, byte, &shift);
    *lane = htonl(ntohl(*lane) | 1u << shift);
}

int nr_read_byte(const uint32_t *header, size_t block, size_t workers) {
    uint32_t mask = (1u << field_bits(workers)) - 1;
    for (int byte = NR_BYTES - 1; byte >= 0; byte--) {
        size_t shift;
        const uint32_t *lane = field_of((uint32_t *)(uintptr_t)header, block, workers, byte, &shift);
        if (ntohl(*lane) >> shift & mask) return byte;
    }
    return -1;
}

uint64_t nr_hash_mix(uint64_t hash, uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    hash ^= hash >> 30, hash *= 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 27, hash *= 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
}
