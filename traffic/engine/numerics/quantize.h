/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Quantization converts float32 to int32 lanes and back, docs/reference/protocol.md, section 6. Lanes are in network byte
 * order; hosts are little-endian. Loops are plain so that the compiler vectorizes them. */

#ifndef NETFOLD_QUANTIZE_H
#define NETFOLD_QUANTIZE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../wire/export.h"
#include "../wire/header.h"

enum { NF_NOT_FINITE = 255 };

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

/* Adds float32 lanes. There is one NaN. */
static inline uint32_t nf_add_float_bits(uint32_t a, uint32_t b) {
    uint32_t sum = nf_bits_of(nf_float_of(a) + nf_float_of(b));
    return (sum & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : sum;
}

/* Returns 2^bits; for a normal one without a call of the library. */
static inline double nf_power_of_two(int bits) {
    uint64_t exponent = (uint64_t)(bits + 1023) << 52;
    double power;
    if (bits < -1022 || bits > 1023) return ldexp(1, bits);
    memcpy(&power, &exponent, sizeof power);
    return power;
}

/* Returns the exponent byte of `count` floats: all magnitudes are below 2^(byte - 126). It is NF_NOT_FINITE if one is NaN or
 * infinite. */
NF_API uint8_t nf_exponent(const float *from, int64_t count);

/* Returns the exponent byte of the finite ones alone. */
NF_API uint8_t nf_finite_exponent(const float *from, int64_t count);

/* Returns the bits to scale by (the scale is 2^bits) at this exponent byte: the sum over 2^headroom workers stays within
 * 2^sum_bits. */
NF_API int nf_shared_bits(uint8_t exponent, int sum_bits, int headroom);

/* Replaces NaN and infinities by 0. */
NF_API void nf_clear_special(float *values, int64_t count);

/* Multiplies by 2^bits and rounds to even. No product may reach 2^31. */
NF_API void nf_quantize(uint32_t *to, const float *from, int bits, int64_t lanes);

/* Multiplies by 2^bits with saturation. Returns whether a value was saturated or is NaN. */
NF_API int nf_quantize_saturating(uint32_t *to, const float *from, int bits, int64_t lanes);

/* Multiplies by `scale` in float64 and rounds once. */
NF_API void nf_dequantize(float *to, const uint32_t *from, double scale, int64_t lanes);

/* Puts two values into a lane, from[i] into its high and from[lanes + i] into its low half, each times 2^bits; no product may
 * exceed 2^14. A negative low half borrows from the high one. */
NF_API void nf_quantize_16x2(uint32_t *to, const float *from, int bits, int64_t lanes);

/* Splits the sums of such lanes, of magnitude below 2^15 in each half, into to[i] and to[lanes + i]. */
NF_API void nf_dequantize_16x2(float *to, const uint32_t *from, double scale, int64_t lanes);

/* Divides lanes that are float32 by `divisor`. */
NF_API void nf_load_float_lanes(float *to, const uint32_t *from, double divisor, int64_t lanes);

/* Converts int64 to four lanes of 16 bits, the last one with the sign: part k of element i is lane k * count + i. Sums over
 * 32767 workers fit. */
NF_API void nf_split_int64(uint32_t *to, const int64_t *from, int64_t count);
NF_API void nf_join_int64(__int128 *to, const uint32_t *from, int64_t count);

/* Writes the codes of special values, which add up in lanes: +inf 1, -inf 2^16, NaN both, finite 0. */
NF_API void nf_special_codes(uint32_t *to, const float *from, int64_t lanes);

/* Returns the IEEE 754 sum of a finite sum and the special values in `codes` (in host order). */
NF_API double nf_with_special(double value, int32_t codes);

NF_API void nf_swap_lane_bytes(uint32_t *to, const uint32_t *from, int64_t lanes);

/* Converts int32 to lanes of its high (signed) or low 16 bits. */
NF_API void nf_int32_half(uint32_t *to, const uint32_t *from, int high, int64_t lanes);

#endif
