/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fields of headers that lie in wire order. Every header has 8 spare bytes behind it, so that a field can be read and
 * rewritten by one whole load and store. Offsets and widths are constants in generated code: each call folds to a few instructions.
 */
#ifndef SS_BITS_H
#define SS_BITS_H

#include <stdint.h>
#include <string.h>

#define SS_INLINE static inline __attribute__((always_inline, unused))
#define SS_LIKELY(x) __builtin_expect(!!(x), 1)
/* Loads a variable by itself. gcc joins loads that are compared, and a load of two variables waits for the stores to both. */
#define SS_ALONE(x) \
    ({ \
        __typeof__(x) v_ = (x); \
        v_; \
    })
#define SS_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Loads `bytes`, a constant, into the cache, to be written. */
SS_INLINE void ss_prefetch(const uint8_t *p, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 1);
}

SS_INLINE uint16_t ss_ld16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, 2);
    return __builtin_bswap16(v);
}
SS_INLINE uint32_t ss_ld32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}
SS_INLINE uint64_t ss_ld64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}
SS_INLINE void ss_st16(uint8_t *p, uint16_t v) {
    v = __builtin_bswap16(v);
    memcpy(p, &v, 2);
}
SS_INLINE void ss_st32(uint8_t *p, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}
SS_INLINE void ss_st64(uint8_t *p, uint64_t v) {
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}

/* All ones in the low n bits, n in 0..64. */
SS_INLINE uint64_t ss_ones(unsigned n) { return n >= 64 ? ~0ULL : (1ULL << n) - 1; }

/* Reads or writes whole bytes, below 8, in pieces of 4, 2 and 1: a field of that length is read as it was written, because the
 * processor forwards no bytes of two stores to one load. */
SS_INLINE uint64_t ss_get_bytes(const uint8_t *p, unsigned n) {
    uint64_t v = 0;
    if (n & 4) {
        v = ss_ld32(p);
        p += 4;
    }
    if (n & 2) {
        v = v << 16 | ss_ld16(p);
        p += 2;
    }
    return n & 1 ? v << 8 | *p : v;
}
SS_INLINE void ss_put_bytes(uint8_t *p, unsigned n, uint64_t v) {
    if (n & 4) {
        ss_st32(p, (uint32_t)(v >> (8 * (n & 3))));
        p += 4;
    }
    if (n & 2) {
        ss_st16(p, (uint16_t)(v >> (8 * (n & 1))));
        p += 2;
    }
    if (n & 1) *p = (uint8_t)v;
}

/* Returns the w bits, 1..64, that begin `off` bits into p. */
SS_INLINE uint64_t ss_get(const uint8_t *p, unsigned off, unsigned w) {
    unsigned s = off & 7;
    p += off >> 3;
    if (s == 0 && w == 64) return ss_ld64(p);
    if (((s | w) & 7) == 0) return ss_get_bytes(p, w / 8);
    if (s + w <= 8) return (p[0] >> (8 - s - w)) & ss_ones(w);
    if (s + w <= 16) return ((uint32_t)ss_ld16(p) >> (16 - s - w)) & ss_ones(w);
    if (s + w <= 32) return (ss_ld32(p) >> (32 - s - w)) & ss_ones(w);
    if (s + w <= 64) return (ss_ld64(p) >> (64 - s - w)) & ss_ones(w);
    return ((ss_ld64(p) << (s + w - 64)) | (p[8] >> (72 - s - w))) & ss_ones(w);
}

SS_INLINE void ss_put(uint8_t *p, unsigned off, unsigned w, uint64_t v) {
    unsigned s = off & 7;
    p += off >> 3;
    v &= ss_ones(w);
    if (s == 0 && w == 64) {
        ss_st64(p, v);
        return;
    }
    if (((s | w) & 7) == 0) {
        ss_put_bytes(p, w / 8, v);
        return;
    }
    if (s + w <= 8) {
        unsigned sh = 8 - s - w;
        p[0] = (uint8_t)((p[0] & ~(ss_ones(w) << sh)) | (v << sh));
    } else if (s + w <= 16) {
        unsigned sh = 16 - s - w;
        ss_st16(p, (uint16_t)((ss_ld16(p) & ~(ss_ones(w) << sh)) | (v << sh)));
    } else if (s + w <= 32) {
        unsigned sh = 32 - s - w;
        ss_st32(p, (uint32_t)((ss_ld32(p) & ~(ss_ones(w) << sh)) | (v << sh)));
    } else if (s + w <= 64) {
        unsigned sh = 64 - s - w;
        ss_st64(p, (ss_ld64(p) & ~(ss_ones(w) << sh)) | (v << sh));
    } else {
        unsigned over = s + w - 64; /* bits in the ninth byte */
        ss_st64(p, (ss_ld64(p) & ~ss_ones(64 - s)) | (v >> over));
        p[8] = (uint8_t)((p[8] & ss_ones(8 - over)) | (v << (8 - over)));
    }
}

/* Returns v's low w bits read as a signed number. */
SS_INLINE int64_t ss_sext(uint64_t v, unsigned w) { return w >= 64 ? (int64_t)v : (int64_t)(v << (64 - w)) >> (64 - w); }

/* Copies n bits, for the rare parts that do not begin on a byte. */
SS_INLINE void ss_copy_bits(uint8_t *dst, unsigned doff, const uint8_t *src, unsigned soff, unsigned n) {
    if (((doff | soff | n) & 7) == 0) {
        memcpy(dst + (doff >> 3), src + (soff >> 3), n >> 3);
        return;
    }
    for (unsigned i = 0; i < n; i++, doff++, soff++) {
        unsigned bit = (src[soff >> 3] >> (7 - (soff & 7))) & 1;
        dst[doff >> 3] = (uint8_t)((dst[doff >> 3] & ~(1u << (7 - (doff & 7)))) | (bit << (7 - (doff & 7))));
    }
}

/* Return the sum of n bytes (an even number) as words of the processor's byte order, and the checksum of such sums (RFC
 * 1071). */
SS_INLINE uint64_t ss_word_sum(const uint8_t *p, unsigned n) {
    uint64_t sum = 0;
    uint32_t words;
    uint16_t last;
    for (; n >= 4; p += 4, n -= 4) {
        memcpy(&words, p, 4);
        sum += words;
    }
    if (n == 0) return sum;
    memcpy(&last, p, 2);
    return sum + last;
}
SS_INLINE uint64_t ss_word_checksum(uint64_t sum) {
    uint8_t folded[2];
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    memcpy(folded, &(uint16_t){(uint16_t)sum}, 2);
    return (uint16_t)~ss_ld16(folded);
}

/* Returns whether two varbits of whole bytes are the same number: BMv2 compares values, not lengths. */
static inline __attribute__((unused)) int ss_var_equal(const uint8_t *a, uint32_t a_bits, const uint8_t *b, uint32_t b_bits) {
    uint32_t n = a_bits / 8, m = b_bits / 8;
    for (; n > m; n--, a++)
        if (*a) return 0;
    for (; m > n; m--, b++)
        if (*b) return 0;
    return n == 0 || memcmp(a, b, n) == 0;
}

#endif
