/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers to lanes and back, a row (what a chunk carries) at a time: docs/protocol.md, section 6. Lanes are in network
 * byte order. Hosts are little-endian. */

#ifndef NETFOLD_NUMBERS_H
#define NETFOLD_NUMBERS_H

#include <stdint.h>

enum nf_dtype { NF_FLOAT32, NF_FLOAT16, NF_INT32 };

enum { NF_LANES_MAX = 256, NF_NOT_FINITE = 255 };

static inline int64_t nf_itemsize(enum nf_dtype dtype) { return dtype == NF_FLOAT16 ? 2 : 4; }

/* Row of `lanes` floats as float32: `from` itself, or converted into `room`. */
const float *nf_load(enum nf_dtype dtype, const void *from, float *room, int64_t lanes);

/* float32 as the dtype. */
void nf_store(enum nf_dtype dtype, void *to, const float *from, int64_t lanes);

/* The exponent byte: all magnitudes are below 2^(byte - 126); NF_NOT_FINITE: there is a NaN or an infinity. */
uint8_t nf_exponent(const float *from, int64_t lanes);

/* That of the finite ones alone. */
uint8_t nf_finite_exponent(const float *from, int64_t lanes);

/* The power of two by which rows of this largest exponent are scaled so that sums stay within 2^sum_bits. */
int nf_shared_bits(uint8_t exponent, int sum_bits);

/* times 2^bits, rounded to even; none may reach 2^31. */
void nf_quantize(uint32_t *to, const float *from, int bits, int64_t lanes);

/* The same with 0 for what is not finite. */
void nf_quantize_finite(uint32_t *to, const float *from, int bits, int64_t lanes);

/* The same, cut to what fits; gives whether something was cut or no number. */
int nf_quantize_saturating(uint32_t *to, const float *from, int bits, int64_t lanes);

/* times `scale`, computed as float64 and rounded once. */
void nf_dequantize(float *to, const uint32_t *from, double scale, int64_t lanes);

/* What infinities and NaN add to a lane: +inf 1, -inf 2^16, NaN both. */
void nf_kinds(uint32_t *to, const float *from, int64_t lanes);

/* What the sum of kinds (in host order) makes of finite sums, as IEEE 754 adds. */
void nf_overlay(float *values, const int32_t *kinds, int64_t lanes);

void nf_swap(uint32_t *to, const uint32_t *from, int64_t lanes);

/* The high (signed) or the low 16 bits of int32. */
void nf_half(uint32_t *to, const uint32_t *from, int high, int64_t lanes);

#endif
