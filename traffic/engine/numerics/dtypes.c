/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "dtypes.h"

#include <string.h>

#include "quantize.h"

static inline float from_half(uint16_t h) {
    uint32_t rest = h & 0x7FFFu;
    uint32_t bits = nf_bits_of(nf_float_of(rest << 13) * 0x1p112f);
    if (rest >= 0x7C00u) bits = 0x7F800000u | (rest & 0x3FFu) << 13;
    return nf_float_of(bits | (uint32_t)(h & 0x8000u) << 16);
}

static inline uint16_t to_half(float f) {
    uint32_t bits = nf_bits_of(f), sign = bits & 0x80000000u;
    bits ^= sign;
    uint32_t normal = (bits - 0x38000000u + 0xFFFu + (bits >> 13 & 1)) >> 13;
    uint32_t subnormal = nf_bits_of(nf_float_of(bits) + 0.5f) - 0x3F000000u;
    uint32_t half = bits < 0x38800000u ? subnormal : normal;                                /* 2^-14 */
    half = bits >= 0x47800000u ? bits > 0x7F800000u ? 0x7E00u : 0x7C00u : half; /* 2^16, infinity, NaN */
    return (uint16_t)(half | sign >> 16);
}

static inline uint16_t to_bfloat16(float f) {
    uint32_t bits = nf_bits_of(f);
    uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40u : rounded);
}

static NF_VECTOR void load_halves(float *restrict to, const uint16_t *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = from_half(from[i]);
}

static NF_VECTOR void load_bfloat16(float *restrict to, const uint16_t *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = nf_float_of((uint32_t)from[i] << 16);
}

static NF_VECTOR void store_halves(uint16_t *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = to_half(from[i]);
}

static NF_VECTOR void store_bfloat16(uint16_t *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = to_bfloat16(from[i]);
}

void nf_load(enum nf_dtype dtype, float *to, const void *from, int64_t count) {
    if (dtype == NF_FLOAT16)
        load_halves(to, from, count);
    else if (dtype == NF_BFLOAT16)
        load_bfloat16(to, from, count);
    else
        memcpy(to, from, (size_t)(4 * count));
}

void nf_store(enum nf_dtype dtype, void *to, const float *from, int64_t count) {
    if (dtype == NF_FLOAT16)
        store_halves(to, from, count);
    else if (dtype == NF_BFLOAT16)
        store_bfloat16(to, from, count);
    else
        memcpy(to, from, (size_t)(4 * count));
}
