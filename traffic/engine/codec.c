/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "codec.h"

#include <math.h>

/* Sums of magnitude up to 2^30 stay clear of the rails of int32; those of pairs, up to 2^14, clear of each other. */
enum { SUM_BITS = 30, PAIR_BITS = 14 };

/* The byte of a float64 stands for eight exponents: all magnitudes are below 2^(8 byte + WIDE_BIAS). Below WIDE_LEAST a scale
 * would be no float64. */
enum { PER_WIDE = 4, WIDE_BITS = 63, WIDE_STEP = 8, WIDE_FIRST = 7, WIDE_BIAS = -1008, WIDE_LEAST = 6 };

void nf_codec_start(struct nf_codec *c, enum nf_dtype dtype, enum nf_scheme scheme, int bits, int64_t lanes) {
    static const int64_t wide[] = {[NF_FLOAT64] = NF_QUADS, [NF_INT64] = NF_PIECES, [NF_INT32] = NF_WORDS};
    *c = (struct nf_codec){.dtype = dtype, .itemsize = nf_itemsize(dtype), .lanes = lanes, .fixed_bits = bits, .divisor = 1};
    static const enum nf_form forms[] = {[NF_HALF] = NF_PAIRS, [NF_AS_FLOATS] = NF_FLOATS}; /* all others: NF_ONES */
    c->form = dtype == NF_INT32 || c->itemsize == 8 ? (enum nf_form)wide[dtype] : forms[scheme];
    c->fixed = c->form == NF_ONES && scheme == NF_FIXED_SCALE;
    c->width = c->form == NF_PAIRS ? 2 * lanes : c->itemsize == 8 ? lanes / PER_WIDE : lanes;
}

void nf_codec_workers(struct nf_codec *c, int64_t workers, int average) {
    c->workers = workers;
    c->divisor = average ? workers : 1;
    for (c->headroom = 0; (int64_t)1 << c->headroom < workers;) c->headroom++;
}

int nf_row_bits(const struct nf_codec *c, uint8_t exponent) {
    if (c->form == NF_QUADS) return WIDE_BITS - (WIDE_STEP * (exponent > WIDE_LEAST ? exponent : WIDE_LEAST) + WIDE_BIAS);
    return nf_shared_bits(exponent, c->form == NF_PAIRS ? PAIR_BITS : SUM_BITS, c->headroom);
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

static const float *load(const struct nf_codec *c, float *room, const void *row, int64_t count) {
    if (c->dtype == NF_FLOAT32) return row;
    nf_load(c->dtype, room, row, count);
    return room;
}

uint8_t nf_row_exponent(const struct nf_codec *c, const void *row, int finite) {
    if (c->form == NF_QUADS) return wide_exponent(row, c->width, finite);
    float room[NF_WIDTH_MAX];
    const float *from = load(c, room, row, c->width);
    return finite ? nf_finite_exponent(from, c->width) : nf_exponent(from, c->width);
}

static void pack_quads(const struct nf_codec *c, uint32_t *to, const double *row, int bits) {
    int64_t whole[NF_LANES_MAX / PER_WIDE];
    double scale = ldexp(1, bits);
    for (int64_t i = 0; i < c->width; i++) whole[i] = isfinite(row[i]) ? llrint(row[i] * scale) : 0;
    nf_split_wide(to, whole, c->width);
}

void nf_row_pack(const struct nf_codec *c, uint32_t *to, const void *row, int bits, int finite) {
    if (c->itemsize == 8) {
        memset(to, 0, (size_t)(4 * c->lanes));
        if (c->form == NF_PIECES)
            nf_split_wide(to, row, c->width);
        else
            pack_quads(c, to, row, bits);
        return;
    }
    if (c->form == NF_WORDS) {
        nf_swap(to, row, c->lanes);
        return;
    }
    float room[NF_WIDTH_MAX];
    const float *from = load(c, room, row, c->width);
    if (c->form == NF_FLOATS) {
        nf_swap(to, (const uint32_t *)(const void *)from, c->lanes);
        return;
    }
    if (finite) {
        if (from != room) from = memcpy(room, from, (size_t)(4 * c->width));
        nf_finite(room, c->width);
    }
    (c->form == NF_PAIRS ? nf_quantize_pairs : nf_quantize)(to, from, bits, c->lanes);
}

int nf_row_pack_fixed(const struct nf_codec *c, uint32_t *to, const void *row) {
    float room[NF_WIDTH_MAX];
    return nf_quantize_saturating(to, load(c, room, row, c->width), c->fixed_bits, c->lanes);
}

/* A sum as float64: rounded to it, divided, scaled. Two factors: 2^-bits alone may be no float64. */
static void unpack_quads(const struct nf_codec *c, double *to, int64_t count, const __int128 *sums, int bits,
                         const int32_t *kinds) {
    double first = ldexp(1, -bits / 2), second = ldexp(1, -bits - -bits / 2);
    for (int64_t i = 0; i < count; i++) {
        to[i] = (double)sums[i] / (double)c->divisor * first * second;
        if (kinds) to[i] = nf_overlaid(to[i], kinds[i]);
    }
}

static struct nf_excess unpack_pieces(int64_t *to, int64_t count, const __int128 *sums) {
    struct nf_excess excess = {.index = -1};
    for (int64_t i = 0; i < count; i++) {
        to[i] = (int64_t)sums[i];
        if (to[i] != sums[i] && excess.index < 0) excess = (struct nf_excess){i, sums[i]};
    }
    return excess;
}

static void unpack_floats(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, int bits,
                          const int32_t *kinds) {
    float room[NF_WIDTH_MAX];
    int direct = c->dtype == NF_FLOAT32 && count == c->width;
    float *values = direct ? to : room;
    double scale = ldexp(1, -bits) / (double)c->divisor;
    if (c->form == NF_FLOATS)
        nf_take_floats(values, lanes, (double)c->divisor, c->lanes);
    else
        (c->form == NF_PAIRS ? nf_dequantize_pairs : nf_dequantize)(values, lanes, scale, c->lanes);
    for (int64_t i = 0; kinds && i < count; i++) values[i] = (float)nf_overlaid(values[i], kinds[i]);
    if (!direct) nf_store(c->dtype, to, values, count);
}

struct nf_excess nf_row_unpack(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, int bits,
                               const int32_t *kinds) {
    if (c->itemsize == 8) {
        __int128 sums[NF_LANES_MAX / PER_WIDE];
        nf_join_wide(sums, lanes, c->width);
        if (c->form == NF_PIECES) return unpack_pieces(to, count, sums);
        unpack_quads(c, to, count, sums, bits, kinds);
    } else if (c->form == NF_WORDS) {
        nf_swap(to, lanes, count);
    } else {
        unpack_floats(c, to, count, lanes, bits, kinds);
    }
    return (struct nf_excess){.index = -1};
}

int64_t nf_row_kind_chunks(const struct nf_codec *c) { return c->form == NF_PAIRS ? 2 : 1; }

void nf_row_kinds(const struct nf_codec *c, uint32_t *to, const void *row, int64_t chunk) {
    float room[NF_WIDTH_MAX];
    const float *from = room;
    if (c->form == NF_QUADS)
        for (int64_t i = 0; i < c->width; i++) room[i] = isfinite(((const double *)row)[i]) ? 0 : (float)((const double *)row)[i];
    else
        from = load(c, room, row, c->width) + chunk * c->lanes;
    memset(to, 0, (size_t)(4 * c->lanes));
    nf_kinds(to, from, c->width < c->lanes ? c->width : c->lanes);
}
