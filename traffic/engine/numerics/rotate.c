/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "rotate.h"

#include <math.h>

#include "mix.h"
#include "quantize.h"

enum {
    INPUT_BITS = 19, /* integers of a row: their rotation, at most 2^11 times as large, fits int32 */
    MAX_SCALE_BITS = 126, /* 2^126 is a normal float32 */
    EXPONENT_BIAS = 126,
    RANGE_BIAS = 176, /* range byte r: a root mean square of at most 2^((r - 176) / 4) */
    DITHER_BITS = 16,
    DITHER_MASK = (1 << DITHER_BITS) - 1,
    CODE_MAX = 127,
    VECTOR = 8,
};

/* The scale is 2^(k / 4) / 30: the codes of a sum that fills its range have a root mean square of 30. */
static const float QUARTERS[] = {0x1.111112p-5f, 0x1.44bb9ap-5f, 0x1.822cb2p-5f, 0x1.cb3dd8p-5f};

/* Returns the value of one code of a sum of this range. */
static double quantum(uint8_t range) {
    int place = range - RANGE_BIAS;
    return ldexp((double)QUARTERS[place & 3], place >> 2);
}

uint8_t nf_range_of(double mean_square) {
    if (!isfinite(mean_square)) return NF_UNKNOWN_RANGE;
    if (mean_square == 0) return NF_BELOW_RANGES;
    int exponent;
    double mantissa = frexp(mean_square, &exponent);
    int byte = RANGE_BIAS + 2 * exponent - (mantissa < M_SQRT1_2);
    return (uint8_t)(byte < NF_BELOW_RANGES ? NF_BELOW_RANGES : byte > NF_ABOVE_RANGES ? NF_ABOVE_RANGES : byte);
}

/* Each element has 32 random bits: the highest is its sign, the lowest 16 are the dither of the coefficient in its place. */
static NF_VECTOR void random_words(uint32_t *to, uint32_t seed, int64_t count) {
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        uint32_t x = seed + i * 0x9E3779B9u;
        x = (x ^ x >> 16) * 0x7FEB352Du;
        x = (x ^ x >> 15) * 0x846CA68Bu;
        to[i] = x ^ x >> 16;
    }
}

static inline int32_t with_sign(int32_t value, uint32_t word) {
    int32_t sign = (int32_t)word >> 31;
    return (value ^ sign) - sign;
}

/* ---- transform ---- */

typedef int32_t vector __attribute__((vector_size(4 * VECTOR), aligned(4), may_alias));

/* Combines pairs at distances 1, 2 and 4 in each vector: the sum of a pair goes to its first place, the difference to its
 * second. */
static NF_VECTOR void transform_vectors(int32_t *values, int64_t count) {
    static const int32_t first[3][VECTOR] = {
        {0, -1, 0, -1, 0, -1, 0, -1}, {0, 0, -1, -1, 0, 0, -1, -1}, {0, 0, 0, 0, -1, -1, -1, -1}};
    const vector by1 = {1, 0, 3, 2, 5, 4, 7, 6}, by2 = {2, 3, 0, 1, 6, 7, 4, 5}, by4 = {4, 5, 6, 7, 0, 1, 2, 3};
    vector sign1, sign2, sign4;
    memcpy(&sign1, first[0], sizeof sign1);
    memcpy(&sign2, first[1], sizeof sign2);
    memcpy(&sign4, first[2], sizeof sign4);
    for (vector *v = (vector *)values; v < (vector *)(values + count); v++) {
        vector x = *v;
        x = __builtin_shuffle(x, by1) + ((x ^ sign1) - sign1);
        x = __builtin_shuffle(x, by2) + ((x ^ sign2) - sign2);
        x = __builtin_shuffle(x, by4) + ((x ^ sign4) - sign4);
        *v = x;
    }
}

/* Combines pairs at distances `step` and 2 * `step`. */
static NF_VECTOR void transform_by_four(int32_t *values, int64_t count, int64_t step) {
    for (int64_t at = 0; at < count; at += 4 * step) {
        int32_t *a = values + at, *b = a + step, *c = b + step, *d = c + step;
        for (int64_t i = 0; i < step; i += VECTOR) {
            vector p = *(vector *)(a + i), q = *(vector *)(b + i), r = *(vector *)(c + i), s = *(vector *)(d + i);
            vector sum1 = p + q, difference1 = p - q, sum2 = r + s, difference2 = r - s;
            *(vector *)(a + i) = sum1 + sum2;
            *(vector *)(b + i) = difference1 + difference2;
            *(vector *)(c + i) = sum1 - sum2;
            *(vector *)(d + i) = difference1 - difference2;
        }
    }
}

/* Combines pairs at distance `step`. */
static void transform(int32_t *values, int64_t count, int64_t step) {
    for (int64_t at = 0; at < count; at += 2 * step)
        for (int64_t i = at; i < at + step; i++) {
            int32_t a = values[i], b = values[i + step];
            values[i] = a + b;
            values[i + step] = a - b;
        }
}

/* Applies the Walsh-Hadamard transform, in place, in natural order. */
static void hadamard(int32_t *values, int64_t width) {
    int64_t step = 1;
    if (width >= VECTOR) {
        transform_vectors(values, width);
        for (step = VECTOR; 4 * step <= width; step *= 4) transform_by_four(values, width, step);
    }
    for (; step < width; step *= 2) transform(values, width, step);
}

/* ---- rows ---- */

static NF_VECTOR void to_integers(int32_t *restrict to, const float *restrict from, const uint32_t *restrict words, float scale,
                                  int64_t width) {
    for (int64_t i = 0; i < width; i++) to[i] = with_sign(__builtin_irintf(from[i] * scale), words[i]);
}

/* Converts coefficients to codes, in place: rounds down after a dither, so that the mean of a code is the coefficient. */
static NF_VECTOR int to_codes(int32_t *restrict values, const uint32_t *restrict words, float factor, uint32_t stagger,
                              int64_t width) {
    const float limit = CODE_MAX << DITHER_BITS;
    int has_excess = 0;
    for (int64_t i = 0; i < width; i++) {
        float scaled = (float)values[i] * factor;
        int fits = fabsf(scaled) <= limit;
        has_excess |= !fits;
        values[i] = (__builtin_irintf(fits ? scaled : 0) + (int32_t)((words[i] + stagger) & DITHER_MASK)) >> DITHER_BITS;
    }
    return !has_excess;
}

static NF_VECTOR void pack_lanes(uint32_t *restrict to, const int32_t *restrict codes, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) {
        uint32_t a = (uint32_t)codes[i], b = (uint32_t)codes[lanes + i], c = (uint32_t)codes[2 * lanes + i];
        to[i] = __builtin_bswap32((a << 24) + (b << 16) + (c << 8) + (uint32_t)codes[3 * lanes + i]);
    }
}

/* Splits the lowest field first, and gives back to it what it borrowed from the next. Returns the sum of the squares. */
static NF_VECTOR int64_t unpack_lanes(int32_t *restrict codes, const uint32_t *restrict from, int64_t lanes) {
    int32_t energy = 0; /* at most NF_ROTATED_MAX * 2^14 */
    for (int64_t i = 0; i < lanes; i++) {
        int32_t rest = (int32_t)__builtin_bswap32(from[i]);
        int32_t d = (int8_t)rest;
        rest = (int32_t)((uint32_t)rest - (uint32_t)d) >> 8;
        int32_t c = (int8_t)rest;
        rest = (rest - c) >> 8;
        int32_t b = (int8_t)rest;
        int32_t a = (int8_t)((rest - b) >> 8);
        codes[i] = a;
        codes[lanes + i] = b;
        codes[2 * lanes + i] = c;
        codes[3 * lanes + i] = d;
        energy += a * a + b * b + c * c + d * d;
    }
    return energy;
}

static NF_VECTOR void to_floats(float *restrict to, const int32_t *restrict values, const uint32_t *restrict words,
                                float factor, int64_t width) {
    for (int64_t i = 0; i < width; i++) to[i] = (float)with_sign(values[i], words[i]) * factor;
}

static uint32_t seed_of(const struct nf_rotation *r) { return (uint32_t)nf_mix(r->fingerprint, (uint64_t)r->row); }

int nf_rotate_pack(uint32_t *to, const float *from, int64_t width, uint8_t exponent, uint8_t range,
                   const struct nf_rotation *r) {
    uint32_t words[NF_ROTATED_MAX];
    int32_t values[NF_ROTATED_MAX];
    int bits = INPUT_BITS - (exponent - EXPONENT_BIAS);
    if (bits > MAX_SCALE_BITS) bits = MAX_SCALE_BITS;
    random_words(words, seed_of(r), width);
    to_integers(values, from, words, ldexpf(1, bits), width);
    hadamard(values, width);
    float factor = (float)(ldexp(1, DITHER_BITS - bits) / (quantum(range) * sqrt((double)width)));
    uint32_t stagger = (uint32_t)((r->rank << DITHER_BITS) / r->workers);
    if (!to_codes(values, words, factor, stagger, width)) return 0;
    pack_lanes(to, values, width / 4);
    return 1;
}

uint8_t nf_rotate_unpack(float *to, const uint32_t *from, int64_t width, uint8_t range, double divisor,
                         const struct nf_rotation *r) {
    uint32_t words[NF_ROTATED_MAX];
    int32_t values[NF_ROTATED_MAX];
    int64_t energy = unpack_lanes(values, from, width / 4);
    double step = quantum(range);
    random_words(words, seed_of(r), width);
    hadamard(values, width);
    to_floats(to, values, words, (float)(step / sqrt((double)width) / divisor), width);
    return nf_range_of((double)energy * (step * step) / (double)width);
}

void nf_rotate_remainder(float *to, const float *from, int64_t width, uint8_t exponent, uint8_t range,
                         const struct nf_rotation *r) {
    uint32_t lanes[NF_LANES_MAX];
    float values[NF_ROTATED_MAX];
    if (!nf_rotate_pack(lanes, from, width, exponent, range, r)) {
        memset(to, 0, (size_t)width * sizeof *to);
        return;
    }
    nf_rotate_unpack(values, lanes, width, range, 1, r);
    for (int64_t i = 0; i < width; i++) to[i] = from[i] - values[i];
}
