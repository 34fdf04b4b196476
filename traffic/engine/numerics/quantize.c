/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "quantize.h"

#include <math.h>

enum { EXPONENT_BIAS = 126, SCALE_BITS_MAX = 126 }; /* 2^bits and 2^-bits are normal float32 */

static const float LIMIT = 2147483520.0f; /* the largest float32 below 2^31 */

NF_VECTOR uint8_t nf_exponent(const float *from, int64_t count) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = nf_bits_of(from[i]) & 0x7FFFFFFFu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return (uint8_t)(largest >> 23);
}

uint8_t nf_finite_exponent(const float *from, int64_t count) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = nf_bits_of(from[i]) & 0x7FFFFFFFu;
        if (magnitude < 0x7F800000u && magnitude > largest) largest = magnitude;
    }
    return (uint8_t)(largest >> 23);
}

int nf_shared_bits(uint8_t exponent, int sum_bits, int headroom) {
    int min_exponent = sum_bits + 1; /* below it the scale would not be a normal float32 */
    return sum_bits - headroom - ((exponent > min_exponent ? exponent : min_exponent) - EXPONENT_BIAS);
}

void nf_clear_special(float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) values[i] = 0;
}

NF_VECTOR void nf_quantize(uint32_t *restrict to, const float *restrict from, int bits, int64_t lanes) {
    float scale = (float)nf_power_of_two(bits);
    for (int64_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32((uint32_t)__builtin_irintf(from[i] * scale));
}

NF_VECTOR int nf_quantize_saturating(uint32_t *restrict to, const float *restrict from, int bits, int64_t lanes) {
    float scale = (float)nf_power_of_two(bits);
    int saturated = 0;
    for (int64_t i = 0; i < lanes; i++) {
        float value = rintf(from[i] * scale);
        saturated |= !(fabsf(value) <= LIMIT);
        value = value > LIMIT ? LIMIT : value < -LIMIT ? -LIMIT : value == value ? value : 0;
        to[i] = __builtin_bswap32((uint32_t)(int32_t)value);
    }
    return saturated;
}

/* Returns whether float32 arithmetic is as exact as float64: the scale is a power of two, and normal. The sum is rounded to
 * float32 first, and a sum that this rounds has so many bits that its product is not subnormal. */
static int is_exact(double scale) {
    uint64_t bits;
    memcpy(&bits, &scale, sizeof bits);
    int64_t exponent = (int64_t)(bits >> 52) - 1023;
    return !(bits & ((1ull << 52) - 1)) && exponent >= -SCALE_BITS_MAX && exponent <= SCALE_BITS_MAX;
}

static NF_VECTOR void dequantize_exactly(float *restrict to, const uint32_t *restrict from, float scale, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = (float)(int32_t)__builtin_bswap32(from[i]) * scale;
}

static NF_VECTOR void dequantize(float *restrict to, const uint32_t *restrict from, double scale, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = (float)((int32_t)__builtin_bswap32(from[i]) * scale);
}

void nf_dequantize(float *to, const uint32_t *from, double scale, int64_t lanes) {
    if (is_exact(scale))
        dequantize_exactly(to, from, (float)scale, lanes);
    else
        dequantize(to, from, scale, lanes);
}

NF_VECTOR void nf_quantize_16x2(uint32_t *restrict to, const float *restrict from, int bits, int64_t lanes) {
    float scale = (float)nf_power_of_two(bits);
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t high = (uint32_t)__builtin_irintf(from[i] * scale), low = (uint32_t)__builtin_irintf(from[lanes + i] * scale);
        to[i] = __builtin_bswap32((high << 16) + low);
    }
}

static inline int32_t low_of(uint32_t sum) { return (int16_t)sum; }
static inline int32_t high_of(uint32_t sum) { return (int32_t)(sum - (uint32_t)low_of(sum)) >> 16; } /* undoes the borrow */

static NF_VECTOR void dequantize_16x2_exactly(float *restrict to, const uint32_t *restrict from, float scale, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t sum = __builtin_bswap32(from[i]);
        to[i] = (float)high_of(sum) * scale;
        to[lanes + i] = (float)low_of(sum) * scale;
    }
}

static NF_VECTOR void dequantize_16x2(float *restrict to, const uint32_t *restrict from, double scale, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t sum = __builtin_bswap32(from[i]);
        to[i] = (float)(high_of(sum) * scale);
        to[lanes + i] = (float)(low_of(sum) * scale);
    }
}

void nf_dequantize_16x2(float *to, const uint32_t *from, double scale, int64_t lanes) {
    if (is_exact(scale))
        dequantize_16x2_exactly(to, from, (float)scale, lanes);
    else
        dequantize_16x2(to, from, scale, lanes);
}

NF_VECTOR void nf_load_float_lanes(float *restrict to, const uint32_t *restrict from, double divisor, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = nf_float_of(__builtin_bswap32(from[i]));
    for (int64_t i = 0; i < lanes && divisor != 1; i++) to[i] = (float)(to[i] / divisor);
}

void nf_split_int64(uint32_t *to, const int64_t *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)from[i];
        for (int k = 0; k < 3; k++) to[k * count + i] = __builtin_bswap32((uint32_t)(value >> 16 * k & 0xFFFF));
        to[3 * count + i] = __builtin_bswap32((uint32_t)(from[i] >> 48));
    }
}

void nf_join_int64(__int128 *to, const uint32_t *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        __int128 sum = 0;
        for (int k = 3; k >= 0; k--) sum = sum * 65536 + (int32_t)__builtin_bswap32(from[k * count + i]);
        to[i] = sum;
    }
}

void nf_special_codes(uint32_t *to, const float *from, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t plus = isnan(from[i]) || (isinf(from[i]) && from[i] > 0);
        uint32_t minus = isnan(from[i]) || (isinf(from[i]) && from[i] < 0);
        to[i] = __builtin_bswap32(plus + (minus << 16));
    }
}

double nf_with_special(double value, int32_t codes) {
    int plus = (codes & 0xFFFF) != 0, minus = (uint32_t)codes >> 16 != 0;
    return plus && minus ? NAN : plus ? INFINITY : minus ? -INFINITY : value;
}

NF_VECTOR void nf_swap_lane_bytes(uint32_t *restrict to, const uint32_t *restrict from, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32(from[i]);
}

void nf_int32_half(uint32_t *to, const uint32_t *from, int high, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++)
        to[i] = __builtin_bswap32(high ? (uint32_t)((int32_t)from[i] >> 16) : from[i] & 0xFFFFu);
}
