/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The codec of rows converts the elements of a chunk to lanes, and summed lanes to elements, for one dtype and numeric scheme,
 * docs/reference/protocol.md, section 6. */

#ifndef NETFOLD_CODEC_H
#define NETFOLD_CODEC_H

#include "dtypes.h"
#include "quantize.h"
#include "rotate.h"

enum nf_scheme { NF_BLOCK_FLOAT, NF_FIXED_SCALE, NF_INTEGER, NF_PACKED_HALF, NF_FLOAT32_SUM, NF_ROTATED_QUARTER };

enum nf_lane_format {
    NF_LANE_FIXED32,   /* one scaled float a lane */
    NF_LANE_FIXED16X2, /* two scaled floats a lane */
    NF_LANE_ROTATED8X4, /* four codes of rotated floats a lane */
    NF_LANE_FIXED64,   /* a float64, scaled to 64 bits, in four lanes */
    NF_LANE_INT32,
    NF_LANE_INT64,   /* in four lanes */
    NF_LANE_FLOAT32, /* unscaled: switches add floats */
};

enum { NF_ROW_MAX = NF_ROTATED_MAX }; /* elements of a row */

struct nf_codec {
    enum nf_dtype dtype;
    enum nf_lane_format format;
    int64_t itemsize, lanes;
    int64_t width;    /* elements of a row */
    int is_fixed;     /* scaled by 2^fixed_bits, not by shared exponents */
    int fixed_bits, headroom;
    int64_t workers, divisor;
};

/* A sum that does not fit its dtype. */
struct nf_excess {
    int64_t index; /* in the row; -1: none */
    __int128 total;
};

NF_API void nf_codec_init(struct nf_codec *c, enum nf_dtype dtype, enum nf_scheme scheme, int bits, int64_t lanes);

/* Returns the codec that re-encodes rows: the same one, but NF_LANE_FIXED16X2 for rotated rows. */
NF_API void nf_codec_reencoder(struct nf_codec *to, const struct nf_codec *c);

/* Sets the number of contributions to a sum. `average`: the sum is divided by it. */
NF_API void nf_codec_set_workers(struct nf_codec *c, int64_t workers, int average);

/* Returns whether lanes are scaled floats. */
static inline int nf_is_scaled(const struct nf_codec *c) { return c->format < NF_LANE_INT32; }

/* Returns the bits to scale rows of this largest exponent byte by: the scale is 2^bits. */
NF_API int nf_row_bits(const struct nf_codec *c, uint8_t exponent);

/* Returns the exponent byte of a row of floats: NF_NOT_FINITE if it has a NaN or an infinity. With `finite` it is that of the
 * other elements. */
NF_API uint8_t nf_row_exponent(const struct nf_codec *c, const void *row, int finite);

/* Packs a row of `width` elements into lanes. `finite`: special values are sent as 0. */
NF_API void nf_row_pack(const struct nf_codec *c, uint32_t *to, const void *row, int bits, int finite);

/* Packs a row by the fixed scale. Returns whether a lane was saturated. */
NF_API int nf_row_pack_fixed(const struct nf_codec *c, uint32_t *to, const void *row);

/* Unpacks summed lanes to the first `count` elements of a row. `special`: summed codes of special values (`width`, in host
 * order), or NULL. */
NF_API struct nf_excess nf_row_unpack(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, int bits,
                                      const int32_t *special);

/* Packs a row into lanes of NF_LANE_ROTATED8X4, by its exponent byte (finite) and the range byte of the sum. Returns whether it
 * fits. */
NF_API int nf_row_pack_rotated(const struct nf_codec *c, uint32_t *to, const void *row, uint8_t exponent, uint8_t range,
                               const struct nf_rotation *r);

/* Unpacks its summed lanes to the first `count` elements. Returns the range byte of the sums; `to` is not written if `range`
 * does not hold them. */
NF_API uint8_t nf_row_unpack_rotated(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, uint8_t range,
                                     const struct nf_rotation *r);

/* Computes by how much the codes of a row miss its first `count` elements, as float32; 0 if it does not fit. */
NF_API void nf_row_remainder(const struct nf_codec *c, float *to, int64_t count, const void *row, uint8_t exponent,
                             uint8_t range, const struct nf_rotation *r);

/* Returns the sum of the squares of `count` floats. */
NF_API double nf_row_energy(const struct nf_codec *c, const void *row, int64_t count);

/* Returns the number of chunks that a row's special values take; packs the lanes of one of them. */
NF_API int64_t nf_row_special_chunks(const struct nf_codec *c);
NF_API void nf_row_special_codes(const struct nf_codec *c, uint32_t *to, const void *row, int64_t chunk);

#endif
