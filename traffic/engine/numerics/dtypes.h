/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Element types of arrays; conversion of 16-bit floats to float32 and back. */

#ifndef NETFOLD_DTYPES_H
#define NETFOLD_DTYPES_H

#include <stdint.h>

#include "../wire/export.h"

enum nf_dtype { NF_FLOAT32, NF_FLOAT16, NF_INT32, NF_BFLOAT16, NF_FLOAT64, NF_INT64, NF_DTYPES };

static inline int64_t nf_itemsize(enum nf_dtype dtype) {
    return dtype == NF_FLOAT64 || dtype == NF_INT64 ? 8 : dtype == NF_FLOAT16 || dtype == NF_BFLOAT16 ? 2 : 4;
}

/* Converts float32, float16 or bfloat16 to float32. */
NF_API void nf_load(enum nf_dtype dtype, float *to, const void *from, int64_t count);

/* Converts float32 to one of the three: to nearest, ties to even; beyond its range infinite. */
NF_API void nf_store(enum nf_dtype dtype, void *to, const float *from, int64_t count);

#endif
