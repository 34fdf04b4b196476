/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* How a row of an array (what a chunk carries) becomes lanes, and summed lanes a row, for one dtype and scheme:
 * docs/protocol.md, section 6. */

#ifndef NETFOLD_CODEC_H
#define NETFOLD_CODEC_H

#include "dtypes.h"
#include "numbers.h"

enum nf_scheme { NF_SHARED, NF_FIXED_SCALE, NF_WHOLE, NF_HALF, NF_AS_FLOATS };

/* What lies in the lanes. */
enum nf_form {
    NF_ONES,   /* a float, scaled, in each */
    NF_PAIRS,  /* two in each */
    NF_QUADS,  /* a float64, scaled to 64 bits, in four */
    NF_WORDS,  /* an int32 in each */
    NF_PIECES, /* an int64 in four */
    NF_FLOATS, /* a float32 in each, as it is: nodes add floats */
};

enum { NF_WIDTH_MAX = 2 * NF_LANES_MAX }; /* elements of a row */

struct nf_codec {
    enum nf_dtype dtype;
    enum nf_form form;
    int64_t itemsize, lanes;
    int64_t width; /* elements of a row */
    int fixed;     /* scaled by 2^fixed_bits, not by shared exponents */
    int fixed_bits, headroom;
    int64_t workers, divisor;
};

/* A sum that does not fit its dtype. */
struct nf_excess {
    int64_t index; /* in the row; -1: none */
    __int128 total;
};

void nf_codec_start(struct nf_codec *c, enum nf_dtype dtype, enum nf_scheme scheme, int bits, int64_t lanes);

/* Whose rows are added, and whether the sum is divided by their number. */
void nf_codec_workers(struct nf_codec *c, int64_t workers, int average);

/* Whether whole numbers stand for floats, so that there is a scale. */
static inline int nf_is_scaled(const struct nf_codec *c) { return c->form < NF_WORDS; }

/* The power of two that rows of this largest exponent are scaled by. */
int nf_row_bits(const struct nf_codec *c, uint8_t exponent);

/* The exponent byte of a row of floats: NF_NOT_FINITE if a NaN or an infinity is in it. `finite`: that of the others. */
uint8_t nf_row_exponent(const struct nf_codec *c, const void *row, int finite);

/* A row (of `width` elements) to lanes. `finite`: with 0 for what is not finite. */
void nf_row_pack(const struct nf_codec *c, uint32_t *to, const void *row, int bits, int finite);

/* The same by the fixed scale; gives whether something was cut. */
int nf_row_pack_fixed(const struct nf_codec *c, uint32_t *to, const void *row);

/* Summed lanes to the first `count` elements of a row. `kinds`: what NaN and infinities make of them (`width`, in host
 * order), or NULL. */
struct nf_excess nf_row_unpack(const struct nf_codec *c, void *to, int64_t count, const uint32_t *lanes, int bits,
                               const int32_t *kinds);

/* How many chunks the kinds of a row take, and the lanes of one of them. */
int64_t nf_row_kind_chunks(const struct nf_codec *c);
void nf_row_kinds(const struct nf_codec *c, uint32_t *to, const void *row, int64_t chunk);

#endif
