/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "datatypes.h"

#include <stdlib.h>

static int of_integer(size_t bytes) { return bytes == 4 ? NF_INT32 : bytes == 8 ? NF_INT64 : -1; }

static int of_float(size_t bytes) { return bytes == 4 ? NF_FLOAT32 : bytes == 8 ? NF_FLOAT64 : -1; }

static int size_of(MPI_Datatype datatype) {
    int bytes = 0;
    PMPI_Type_size(datatype, &bytes);
    return bytes;
}

int nm_dtype_of(MPI_Datatype d) {
    if (d == MPI_FLOAT) return NF_FLOAT32;
    if (d == MPI_DOUBLE) return NF_FLOAT64;
    if (d == MPI_INT || d == MPI_INT32_T || d == MPI_UINT32_T || d == MPI_UNSIGNED) return NF_INT32;
    if (d == MPI_INT64_T || d == MPI_UINT64_T || d == MPI_LONG_LONG || d == MPI_UNSIGNED_LONG_LONG) return NF_INT64;
    if (d == MPI_AINT || d == MPI_COUNT || d == MPI_OFFSET) return NF_INT64;
    if (d == MPI_LONG || d == MPI_UNSIGNED_LONG) return of_integer(sizeof(long));
    if (d == MPI_DATATYPE_NULL) return -1;
    if (d == MPI_INTEGER) return of_integer((size_t)size_of(d));
    if (d == MPI_REAL || d == MPI_DOUBLE_PRECISION) return of_float((size_t)size_of(d));
    return -1;
}

enum { OPS_OF_ALL = 4 /* the first ones, which take floats, too */ };

int nm_op_number(MPI_Op op) {
    const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (op == ops[i]) return (int)i;
    return -1;
}

int nm_op_takes(MPI_Op op, enum nf_dtype dtype) {
    int number = nm_op_number(op), is_float = dtype == NF_FLOAT32 || dtype == NF_FLOAT64;
    return number >= 0 && (!is_float || number < OPS_OF_ALL);
}

MPI_Datatype nm_datatype_of(enum nf_dtype dtype) {
    return dtype == NF_FLOAT32 ? MPI_FLOAT : dtype == NF_FLOAT64 ? MPI_DOUBLE : dtype == NF_INT64 ? MPI_INT64_T : MPI_INT32_T;
}

static int has_no_gaps(MPI_Datatype datatype) {
    MPI_Aint bound, extent;
    PMPI_Type_get_extent(datatype, &bound, &extent);
    return bound == 0 && extent == size_of(datatype);
}

/* Whether the MPI library owns a datatype. A call that frees it is an error then. */
static int is_predefined(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_INTEGER || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX;
}

/* The one datatype that a derived one repeats. */
static int inner_is_contiguous(MPI_Datatype datatype, int integers, int addresses) {
    int counts[2];
    MPI_Aint none[1];
    MPI_Datatype inner;
    PMPI_Type_get_contents(datatype, integers, addresses, 1, counts, none, &inner);
    int is_contiguous = nm_is_contiguous(inner);
    int combiner;
    PMPI_Type_get_envelope(inner, &integers, &addresses, counts, &combiner);
    if (!is_predefined(combiner)) PMPI_Type_free(&inner);
    return is_contiguous;
}

int nm_is_contiguous(MPI_Datatype datatype) {
    int integers, addresses, datatypes, combiner;
    PMPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner);
    if (combiner == MPI_COMBINER_NAMED) return has_no_gaps(datatype);
    if (combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP)
        return inner_is_contiguous(datatype, integers, addresses);
    return 0;
}
