/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Rows of the scheme quarter: a randomized Hadamard transform of float32, and codes of eight bits, four to a lane,
 * docs/reference/protocol.md, section 6. Transforms are of integers, so every processor has the same bits. */

#ifndef NETFOLD_ROTATE_H
#define NETFOLD_ROTATE_H

#include <stdint.h>

#include "../wire/export.h"
#include "../wire/header.h"

enum {
    NF_ROTATED_MAX = 4 * NF_LANES_MAX, /* elements of a row */
    NF_BELOW_RANGES = 0,    /* sums are zeros, or smaller than those of all ranges */
    NF_ABOVE_RANGES = 254,  /* sums are larger than those of all ranges */
    NF_UNKNOWN_RANGE = 255, /* nothing was observed, or nothing that predicts a range */
    /* The margin says how much larger sums may be than those that predict their range, and the slack how much smaller, in
     * quarters of an octave. */
    NF_RANGE_MARGIN = 2,
    NF_RANGE_SLACK = 12,
};

/* The random bits of a row are the same at all workers; each worker has its part of the dither. */
struct nf_rotation {
    uint64_t fingerprint; /* of the call */
    int64_t row;
    int64_t rank, workers;
};

/* Packs `width` floats, a power of two, into width / 4 lanes. `exponent`: byte of the largest magnitude (nf_exponent), finite.
 * `range`: byte of the range of the sum over all workers. Returns whether all codes fit; if not, `to` is undefined. */
NF_API int nf_rotate_pack(uint32_t *to, const float *from, int64_t width, uint8_t exponent, uint8_t range,
                          const struct nf_rotation *r);

/* Unpacks summed lanes to `width` floats, divided by `divisor`. Returns the range byte that holds the sums. */
NF_API uint8_t nf_rotate_unpack(float *to, const uint32_t *from, int64_t width, uint8_t range, double divisor,
                                const struct nf_rotation *r);

/* Computes by how much the codes of nf_rotate_pack miss `width` floats: `from` less the values of their codes, or 0 if they do
 * not fit. */
NF_API void nf_rotate_remainder(float *to, const float *from, int64_t width, uint8_t exponent, uint8_t range,
                                const struct nf_rotation *r);

/* Returns the smallest range byte that holds sums of this mean square, or NF_UNKNOWN_RANGE if it is not finite. */
NF_API uint8_t nf_range_of(double mean_square);

/* Returns the range that sums of an earlier call predict, or NF_UNKNOWN_RANGE if a code of any range would be too coarse or too
 * fine. */
static inline uint8_t nf_predicted_range(uint8_t observed) {
    int is_usable = observed != NF_BELOW_RANGES && observed + NF_RANGE_MARGIN < NF_ABOVE_RANGES;
    return (uint8_t)(is_usable ? observed + NF_RANGE_MARGIN : NF_UNKNOWN_RANGE);
}

/* Returns whether sums of a row that is not all zeros are within the error bound of `range`. */
static inline int nf_fits_range(uint8_t observed, uint8_t range) {
    return observed != NF_BELOW_RANGES && observed <= range && observed + NF_RANGE_SLACK >= range;
}

#endif
