/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Whole numbers in lanes, from floats and back: docs/protocol.md, section 6. Lanes are in network byte order. Hosts are
 * little-endian. Loops are plain, for the compiler to make vector instructions of. */

#ifndef NETFOLD_NUMBERS_H
#define NETFOLD_NUMBERS_H

#include <stdint.h>
#include <string.h>

enum { NF_LANES_MAX = 256, NF_NOT_FINITE = 255 };

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(NF_PLAIN)
#define NF_VECTOR __attribute__((target_clones("avx2", "default")))
#else
#define NF_VECTOR
#endif

static inline uint32_t nf_bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float nf_float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* Rows of float32. The exponent byte: all magnitudes are below 2^(byte - 126); NF_NOT_FINITE: there is a NaN or an
 * infinity. */
uint8_t nf_exponent(const float *from, int64_t count);

/* That of the finite ones alone. */
uint8_t nf_finite_exponent(const float *from, int64_t count);

/* The power of two by which rows of this largest exponent are scaled so that the sum of 2^headroom workers stays within
 * 2^sum_bits. */
int nf_shared_bits(uint8_t exponent, int sum_bits, int headroom);

/* 0 in place of what is not finite. */
void nf_finite(float *values, int64_t count);

/* times 2^bits, rounded to even; none may reach 2^31. */
void nf_quantize(uint32_t *to, const float *from, int bits, int64_t lanes);

/* The same, cut to what fits; gives whether something was cut or no number. */
int nf_quantize_saturating(uint32_t *to, const float *from, int bits, int64_t lanes);

/* times `scale`, computed as float64 and rounded once. */
void nf_dequantize(float *to, const uint32_t *from, double scale, int64_t lanes);

/* Two in a lane: `from` and `from + lanes`, times 2^bits; none may exceed 2^14. The second one's sign borrows from the
 * first. */
void nf_quantize_pairs(uint32_t *to, const float *from, int bits, int64_t lanes);

/* Sums of pairs, each of magnitude below 2^15, to `to` and `to + lanes`. */
void nf_dequantize_pairs(float *to, const uint32_t *from, double scale, int64_t lanes);

/* Sums that are float32, over `divisor`. */
void nf_take_floats(float *to, const uint32_t *from, double divisor, int64_t lanes);

/* int64 as four lanes of 16 bits, the last one with the sign: piece k of element i in lane k * count + i. Sums of 32767
 * workers fit. */
void nf_split_wide(uint32_t *to, const int64_t *from, int64_t count);
void nf_join_wide(__int128 *to, const uint32_t *from, int64_t count);

/* What infinities and NaN add to a lane: +inf 1, -inf 2^16, NaN both. */
void nf_kinds(uint32_t *to, const float *from, int64_t lanes);

/* What a sum of kinds (in host order) makes of a finite sum, as IEEE 754 adds. */
double nf_overlaid(double value, int32_t kind);

void nf_swap(uint32_t *to, const uint32_t *from, int64_t lanes);

/* The high (signed) or the low 16 bits of int32. */
void nf_half(uint32_t *to, const uint32_t *from, int high, int64_t lanes);

#endif
