/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32 as Ethernet, zlib and RoCE's ICRC have it (polynomial 0x04c11db7, reflected), fast: programs compute it over
 * whole packets. Where the processor multiplies without carry, 64 bytes are folded into the next 64 (V. Gopal et al., "Fast
 * CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009); the rest, and all on other processors, goes
 * by eight tables, eight bytes at a step. */
#include "internal.h"

#if defined(__PCLMUL__) && defined(__SSE4_1__)
#include <immintrin.h>
#endif

static uint32_t t[8][256];

__attribute__((constructor)) static void make_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? (c >> 1) ^ 0xedb88320u : c >> 1;
        t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
}

static uint32_t by_tables(uint32_t r, const uint8_t *p, uint32_t n) {
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t a = r ^ __builtin_bswap32(ss_ld32(p)), b = __builtin_bswap32(ss_ld32(p + 4));
        r = t[7][a & 0xff] ^ t[6][(a >> 8) & 0xff] ^ t[5][(a >> 16) & 0xff] ^ t[4][a >> 24] ^ t[3][b & 0xff] ^
            t[2][(b >> 8) & 0xff] ^ t[1][(b >> 16) & 0xff] ^ t[0][b >> 24];
    }
    for (; n; p++, n--) r = (r >> 8) ^ t[0][(r ^ *p) & 0xff];
    return r;
}

#if defined(__PCLMUL__) && defined(__SSE4_1__)
#define FOLD_LEAST 64u

static __m128i at(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }

/* Moves x by the distance that the two constants stand for, and adds y. */
static __m128i fold(__m128i x, __m128i by, __m128i y) {
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11)), y);
}

/* Continues the CRC over n bytes, a multiple of 16 and at least 64. The constants are powers of x modulo the polynomial, bits
 * reversed: x^(4*128+32), x^(4*128-32); x^(128+32), x^(128-32); x^64; then the polynomial and its reciprocal (Barrett). */
static uint32_t by_folding(uint32_t r, const uint8_t *p, uint32_t n) {
    const __m128i far = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), near = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i half = _mm_set_epi64x(0, 0x0163cd6124), barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low = _mm_setr_epi32(~0, 0, ~0, 0);
    __m128i a = _mm_xor_si128(at(p), _mm_cvtsi32_si128((int)r)), b = at(p + 16), c = at(p + 32), d = at(p + 48);
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
        a = fold(a, far, at(p));
        b = fold(b, far, at(p + 16));
        c = fold(c, far, at(p + 32));
        d = fold(d, far, at(p + 48));
    }
    a = fold(fold(fold(a, near, b), near, c), near, d);
    for (; n >= 16; p += 16, n -= 16) a = fold(a, near, at(p));
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, near, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low), half, 0x00));
    b = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low), barrett, 0x10), low);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, _mm_clmulepi64_si128(b, barrett, 0x00)), 1);
}
#endif

uint64_t ss_crc32(const uint8_t *p, uint32_t n) {
    uint32_t r = 0xffffffffu;
#ifdef FOLD_LEAST
    if (n >= FOLD_LEAST) {
        uint32_t whole = n & ~15u;
        r = by_folding(r, p, whole);
        p += whole;
        n -= whole;
    }
#endif
    return (uint32_t)~by_tables(r, p, n);
}
