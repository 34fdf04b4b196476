/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "codec.h"

#include <math.h>

/* Sums up to 2^30 in magnitude stay below the int32 limits; those of 16x2 lanes, up to 2^14, do not reach the other half. */
enum { SUM_BITS = 30, SUM_BITS_16X2 = 14 };

enum { ENERGY_PARTS = 8 };

/* The byte of a float64 stands for eight exponents: all magnitudes are below 2^(8 byte + WIDE_BIAS). Below WIDE_MIN the scale
 * would not be a float64. */
enum { PER_WIDE = 4, WIDE_BITS = 63, WIDE_STEP = 8, WIDE_FIRST = 7, WIDE_BIAS = -1008, WIDE_MIN = 6 };

void nf_codec_init(struct nf_codec *c, enum nf_dtype dtype, enum nf_scheme scheme, int bits, int64_t lanes) {
    static const int64_t wide[] = {[NF_FLOAT64] = NF_LANE_FIXED64, [NF_INT64] = NF_LANE_INT64, [NF_INT32] = NF_LANE_INT32};
    *c = (struct nf_codec){.dtype = dtype, .itemsize = nf_itemsize(dtype), .lanes = lanes, .fixed_bits = bits, .divisor = 1};
    static const enum nf_lane_format forms[] = {[NF_PACKED_HALF] = NF_LANE_FIXED16X2,
                                                [NF_FLOAT32_SUM] = NF_LANE_FLOAT32,
                                                [NF_ROTATED_QUARTER] = NF_LANE_ROTATED8X4}; /* others: NF_LANE_FIXED32 */
    c->format = dtype == NF_INT32 || c->itemsize == 8 ? (enum nf_lane_format)wide[dtype] : forms[scheme];
    c->is_fixed = c->format == NF_LANE_FIXED32 && scheme == NF_FIXED_SCALE;
    c->width = c->format == NF_LANE_FIXED16X2    ? 2 * lanes
               : c->format == NF_LANE_ROTATED8X4 ? 4 * lanes
               : c->itemsize == 8                ? lanes / PER_WIDE
                                                 : lanes;
}

void nf_codec_reencoder(struct nf_codec *to, const struct nf_codec *c) {
    *to = *c;
    if (c->format != NF_LANE_ROTATED8X4) return;
    to->format = NF_LANE_FIXED16X2;
    to->width = 2 * c->lanes;
}

void nf_codec_set_workers(struct nf_codec *c, int64_t workers, int average) {
    c->workers = workers;
    c->divisor = average ? workers : 1;
    for (c->headroom = 0; (int64_t)1 << c->headroom < workers;) c->headroom++;
}

int nf_row_bits(const struct nf_codec *c, uint8_t exponent) {
    if (c->format == NF_LANE_FIXED64) return WIDE_BITS - (WIDE_STEP * (exponent > WIDE_MIN ? exponent : WIDE_MIN) + WIDE_BIAS);
    return nf_shared_bits(exponent, c->format == NF_LANE_FIXED16X2 ? SUM_BITS_16X2 : SUM_BITS, c->headroom);
}

static uint64_t wide_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits & INT64_MAX;
}

static uint8_t wide_exponent(const double *from, int64_t count, int finite) {
    int64_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t exponent = (int64_t)(wide_bits(from[i]) >> 52);
        if (exponent == 2047 && finite) continue;
        largest = exponent > largest ? exponent : largest;
    }
    return (uint8_t)(largest == 2047 ? NF_NOT_FINITE : largest < WIDE_FIRST ? 0 : (largest - WIDE_FIRST) / WIDE_STEP);
}

static const float *load(const struct nf_codec *c, float *buffer, const void *row, int64_t count) {
    if (c->dtype == NF_FLOAT32) return row;
    nf_load(c->dtype, buffer, row, count);
    return buffer;
}

uint8_t nf_row_exponent(const struct nf_codec *c, const void *row, int finite) {
    if (c->format == NF_LANE_FIXED64) return wide_exponent(row, c->width, finite);
    float buffer[NF_ROW_MAX];
    const float *from = load(c, buffer, row, c->width);
    return finite ? nf_finite_exponent(from, c->width) : nf_exponent(from, c->width);
}

static void pack_fixed64(const struct nf_codec *c, uint32_t *to, const double *row, int bits) {
    int64_t whole[NF_LANES_MAX / PER_WIDE];
    double scale = ldexp(1, bits);
    for (int64_t i = 0; i < c->width; i++) whole[i] = isfinite(row[i]) ? llrint(row[i] * scale) : 0;
    nf_split_int64(to, whole, c->width);
}

void nf_row_pack(const struct nf_codec *c, uint32_t *to, const void *row, int bits, int finite) {
    if (c->itemsize == 8) {
        memset(to, 0, (size_t)(4 * c->lanes));
        if (c->format == NF_LANE_INT64)
            nf_split_int64(to, row, c->width);
        else
            pack_fixed64(c, to, row, bits);
        return;
    }
    if (c->format == NF_LANE_INT32) {
        nf_swap_lane_bytes(to, row, c->lanes);
        return;
    }
    float buffer[NF_ROW_MAX];
    const float *from = load(c, buffer, row, c->width);
    if (c->format == NF_LANE_FLOAT32) {
        nf_swap_lane_bytes(to, (const uint32_t *)(const void *)from, c->lanes);
        return;
    }
    if (finite) {
        if (from != buffer) from = memcpy(buffer, from, (size_t)(4 * c->width));
        nf_clear_special(buffer, c->width);
    }
    (c->format == NF_LANE_FIXED16X2 ? nf_quantize_16x2 : nf_quantize)(to, from, bits, c->lanes);
}

int nf_row_pack_fixed(const struct nf_codec *c, uint32_t *to, const void *row) {
    float buffer[NF_ROW_MAX];
    return nf_quantize_saturating(to, load(c, buffer, row, c->width), c->fixed_bits, c->lanes);
}

/* Rounds the sum to float64, divides it and then scales it, by two factors because 2^-bits alone may not be a float64. */
static void unpack_fixed64(const struct nf_codec *c, double *to, int64_t count, const __int128 *sums, int bits,
                           const int32_t *special) {
    double first = ldexp(1, -bits / 2), second = ldexp(1, -bits - -bits / 2);
    for (int64_t i = 0; i < count; i++) {
        to[i] = (double)sums[i] / (double)c->divisor * first * second;
        if (special) to[i] = nf_with_special(to[i], special[i]);
    }
}

static struct nf_excess unpack_int64(int64_t *to, int64_t count, const __int128 *sums) {
    struct nf_excess excess = {.index = -1};
    for (int64_t i = 0; i < count; i++) {
        to[i] = (int64_t)sums[i];
        if (to[i] != sums[i] && excess.index < 0) excess = (struct nf_excess){i, sums[i]};
    }
    return excess;
}

static void unpack_floats(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, int bits,
                          const int32_t *special) {
    float buffer[NF_ROW_MAX];
    int direct = c->dtype == NF_FLOAT32 && count == c->width;
    float *values = direct ? to : buffer;
    double scale = nf_power_of_two(-bits) / (double)c->divisor;
    if (c->format == NF_LANE_FLOAT32)
        nf_load_float_lanes(values, lanes, (double)c->divisor, c->lanes);
    else
        (c->format == NF_LANE_FIXED16X2 ? nf_dequantize_16x2 : nf_dequantize)(values, lanes, scale, c->lanes);
    for (int64_t i = 0; special && i < count; i++) values[i] = (float)nf_with_special(values[i], special[i]);
    if (!direct) nf_store(c->dtype, to, values, count);
}

struct nf_excess nf_row_unpack(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, int bits,
                               const int32_t *special) {
    if (c->itemsize == 8) {
        __int128 sums[NF_LANES_MAX / PER_WIDE];
        nf_join_int64(sums, lanes, c->width);
        if (c->format == NF_LANE_INT64) return unpack_int64(to, count, sums);
        unpack_fixed64(c, to, count, sums, bits, special);
    } else if (c->format == NF_LANE_INT32) {
        nf_swap_lane_bytes(to, lanes, count);
    } else {
        unpack_floats(c, to, count, lanes, bits, special);
    }
    return (struct nf_excess){.index = -1};
}

int nf_row_pack_rotated(const struct nf_codec *c, uint32_t *to, const void *row, uint8_t exponent, uint8_t range,
                        const struct nf_rotation *r) {
    float buffer[NF_ROW_MAX];
    return nf_rotate_pack(to, load(c, buffer, row, c->width), c->width, exponent, range, r);
}

uint8_t nf_row_unpack_rotated(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, uint8_t range,
                              const struct nf_rotation *r) {
    float buffer[NF_ROW_MAX];
    uint8_t observed = nf_rotate_unpack(buffer, lanes, c->width, range, (double)c->divisor, r);
    if (nf_fits_range(observed, range)) nf_store(c->dtype, to, buffer, count);
    return observed;
}

void nf_row_remainder(const struct nf_codec *c, float *to, int64_t count, const void *row, uint8_t exponent, uint8_t range,
                      const struct nf_rotation *r) {
    float buffer[NF_ROW_MAX], left[NF_ROW_MAX];
    nf_rotate_remainder(left, load(c, buffer, row, c->width), c->width, exponent, range, r);
    memcpy(to, left, (size_t)count * sizeof *to);
}

/* Adds up eight partial sums, so that compilers may use vectors and every processor adds in the same order. The square of a
 * float32 is exact as a float64. */
double nf_row_energy(const struct nf_codec *c, const void *row, int64_t count) {
    float buffer[NF_ROW_MAX];
    const float *from = load(c, buffer, row, count);
    double partial[ENERGY_PARTS] = {0}, energy = 0;
    for (int64_t i = 0; i < count; i++) partial[i % ENERGY_PARTS] += (double)from[i] * (double)from[i];
    for (int i = 0; i < ENERGY_PARTS; i++) energy += partial[i];
    return energy;
}

int64_t nf_row_special_chunks(const struct nf_codec *c) { return c->width > c->lanes ? c->width / c->lanes : 1; }

void nf_row_special_codes(const struct nf_codec *c, uint32_t *to, const void *row, int64_t chunk) {
    float buffer[NF_ROW_MAX];
    const float *from = buffer;
    if (c->format == NF_LANE_FIXED64)
        for (int64_t i = 0; i < c->width; i++)
            buffer[i] = isfinite(((const double *)row)[i]) ? 0 : (float)((const double *)row)[i];
    else
        from = load(c, buffer, row, c->width) + chunk * c->lanes;
    memset(to, 0, (size_t)(4 * c->lanes));
    nf_special_codes(to, from, c->width < c->lanes ? c->width : c->lanes);
}
