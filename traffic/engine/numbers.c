/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "numbers.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(NF_PLAIN)
#define VECTOR __attribute__((target_clones("avx2", "default")))
#else
#define VECTOR
#endif

enum { EXPONENT_MIN = 31, EXPONENT_BIAS = 126 }; /* below EXPONENT_MIN a scale would be no normal float32 */

static const float LIMIT = 2147483520.0f; /* the largest float32 below 2^31 */

static inline uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline float from_half(uint16_t h) {
    uint32_t rest = h & 0x7FFFu;
    uint32_t bits = bits_of(float_of(rest << 13) * 0x1p112f);
    if (rest >= 0x7C00u) bits = 0x7F800000u | (rest & 0x3FFu) << 13;
    return float_of(bits | (uint32_t)(h & 0x8000u) << 16);
}

/* To nearest, ties to even; beyond the range infinite. */
static inline uint16_t to_half(float f) {
    uint32_t bits = bits_of(f), sign = bits & 0x80000000u, half;
    bits ^= sign;
    if (bits >= 0x47800000u) /* 2^16, infinity, NaN */
        half = bits > 0x7F800000u ? 0x7E00u : 0x7C00u;
    else if (bits < 0x38800000u) /* 2^-14: a subnormal half */
        half = bits_of(float_of(bits) + 0.5f) - 0x3F000000u;
    else
        half = (bits - 0x38000000u + 0xFFFu + (bits >> 13 & 1)) >> 13;
    return (uint16_t)(half | sign >> 16);
}

const float *nf_load(enum nf_dtype dtype, const void *from, float *room, int64_t lanes) {
    if (dtype != NF_FLOAT16) return from;
    const uint16_t *halves = from;
    for (int64_t i = 0; i < lanes; i++) room[i] = from_half(halves[i]);
    return room;
}

void nf_store(enum nf_dtype dtype, void *to, const float *from, int64_t lanes) {
    if (dtype == NF_FLOAT16) {
        uint16_t *halves = to;
        for (int64_t i = 0; i < lanes; i++) halves[i] = to_half(from[i]);
    } else {
        memcpy(to, from, (size_t)(4 * lanes));
    }
}

VECTOR uint8_t nf_exponent(const float *from, int64_t lanes) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t magnitude = bits_of(from[i]) & 0x7FFFFFFFu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return (uint8_t)(largest >> 23);
}

uint8_t nf_finite_exponent(const float *from, int64_t lanes) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t magnitude = bits_of(from[i]) & 0x7FFFFFFFu;
        if (magnitude < 0x7F800000u && magnitude > largest) largest = magnitude;
    }
    return (uint8_t)(largest >> 23);
}

int nf_shared_bits(uint8_t exponent, int sum_bits) {
    return sum_bits - ((exponent > EXPONENT_MIN ? exponent : EXPONENT_MIN) - EXPONENT_BIAS);
}

VECTOR void nf_quantize(uint32_t *restrict to, const float *restrict from, int bits, int64_t lanes) {
    float scale = ldexpf(1, bits);
    for (int64_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32((uint32_t)(int32_t)rintf(from[i] * scale));
}

void nf_quantize_finite(uint32_t *to, const float *from, int bits, int64_t lanes) {
    float scale = ldexpf(1, bits);
    for (int64_t i = 0; i < lanes; i++) {
        float value = isfinite(from[i]) ? from[i] : 0;
        to[i] = __builtin_bswap32((uint32_t)(int32_t)rintf(value * scale));
    }
}

VECTOR int nf_quantize_saturating(uint32_t *restrict to, const float *restrict from, int bits, int64_t lanes) {
    float scale = ldexpf(1, bits);
    int cut = 0;
    for (int64_t i = 0; i < lanes; i++) {
        float value = rintf(from[i] * scale);
        cut |= !(fabsf(value) <= LIMIT);
        value = value > LIMIT ? LIMIT : value < -LIMIT ? -LIMIT : value == value ? value : 0;
        to[i] = __builtin_bswap32((uint32_t)(int32_t)value);
    }
    return cut;
}

VECTOR void nf_dequantize(float *restrict to, const uint32_t *restrict from, double scale, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = (float)((int32_t)__builtin_bswap32(from[i]) * scale);
}

void nf_kinds(uint32_t *to, const float *from, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t plus = isnan(from[i]) || (isinf(from[i]) && from[i] > 0);
        uint32_t minus = isnan(from[i]) || (isinf(from[i]) && from[i] < 0);
        to[i] = __builtin_bswap32(plus + (minus << 16));
    }
}

void nf_overlay(float *values, const int32_t *kinds, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) {
        int plus = (kinds[i] & 0xFFFF) != 0, minus = (uint32_t)kinds[i] >> 16 != 0;
        if (plus || minus) values[i] = plus && minus ? NAN : plus ? INFINITY : -INFINITY;
    }
}

VECTOR void nf_swap(uint32_t *restrict to, const uint32_t *restrict from, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32(from[i]);
}

void nf_half(uint32_t *to, const uint32_t *from, int high, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++)
        to[i] = __builtin_bswap32(high ? (uint32_t)((int32_t)from[i] >> 16) : from[i] & 0xFFFFu);
}
