/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The hash algorithms of v1model, as BMv2 computes them (calculations.cpp there); CRC-32 is in crc32.c. Tables are made
 * once, at load. */
#include "internal.h"

static uint16_t t16[256], tccitt[256];
static uint64_t t64[256];
static uint8_t t8[256];

__attribute__((constructor)) static void make_tables(void) {
    for (unsigned i = 0; i < 256; i++) {
        uint16_t a = (uint16_t)i, b = (uint16_t)(i << 8);
        uint64_t d = i;
        uint8_t e = (uint8_t)i;
        for (int k = 0; k < 8; k++) {
            a = (uint16_t)(a & 1 ? (a >> 1) ^ 0xa001 : a >> 1);
            b = (uint16_t)(b & 0x8000 ? (b << 1) ^ 0x1021 : b << 1);
            d = d & 1 ? (d >> 1) ^ 0xd800000000000000ULL : d >> 1;
            e = (uint8_t)(e & 0x80 ? (e << 1) ^ 0x07 : e << 1);
        }
        t16[i] = a;
        tccitt[i] = b;
        t64[i] = d;
        t8[i] = e;
    }
}

uint64_t ss_crc16(const uint8_t *p, uint32_t n) {
    uint16_t r = 0;
    for (uint32_t i = 0; i < n; i++) r = (uint16_t)((r >> 8) ^ t16[(r ^ p[i]) & 0xff]);
    return r;
}

uint64_t ss_crc_ccitt(const uint8_t *p, uint32_t n) {
    uint16_t r = 0xffff;
    for (uint32_t i = 0; i < n; i++) r = (uint16_t)((r << 8) ^ tccitt[(r >> 8) ^ p[i]]);
    return r;
}

uint64_t ss_crc8_custom(const uint8_t *p, uint32_t n) {
    uint8_t r = 0;
    for (uint32_t i = 0; i < n; i++) r = t8[r ^ p[i]];
    return r;
}

uint64_t ss_crc64_custom(const uint8_t *p, uint32_t n) {
    uint64_t r = 0;
    for (uint32_t i = 0; i < n; i++) r = (r >> 8) ^ t64[(r ^ p[i]) & 0xff];
    return r;
}

/* Computes the checksum of RFC 1071. */
uint64_t ss_csum16(const uint8_t *p, uint32_t n) {
    uint64_t sum = 0;
    while (n >= 4) {
        sum += ss_ld32(p);
        p += 4;
        n -= 4;
    }
    if (n >= 2) {
        sum += ss_ld16(p);
        p += 2;
        n -= 2;
    }
    if (n) sum += (uint32_t)p[0] << 8;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

uint64_t ss_xor16(const uint8_t *p, uint32_t n) {
    uint16_t r = 0;
    for (; n >= 2; p += 2, n -= 2) r ^= ss_ld16(p);
    if (n) r = (uint16_t)(r ^ (p[0] << 8));
    return r;
}

uint64_t ss_xor32(const uint8_t *p, uint32_t n) {
    uint32_t r = 0, i = 0;
    for (; n >= 4; p += 4, n -= 4) r ^= ss_ld32(p);
    for (; i < n; i++) r ^= (uint32_t)p[i] << (24 - 8 * i);
    return r;
}

uint64_t ss_identity(const uint8_t *p, uint32_t n) {
    uint64_t r = 0;
    for (uint32_t i = 0; i < n && i < 8; i++) r = (r << 8) | p[i];
    return r;
}
