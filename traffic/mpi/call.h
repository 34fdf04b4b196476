/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A collective call of any size: segments, and MPI's own reduction of those that do not fit. */

#ifndef NETFOLD_MPI_CALL_H
#define NETFOLD_MPI_CALL_H

#include "reduce.h"

struct nm_call {
    const struct nm_communicator *communicator;
    enum nf_kind kind;
    int root;
    const void *input; /* NULL: zeros. Of a broadcast: at the root only */
    void *output;      /* NULL: not wanted. May be the input */
    size_t elements;   /* of the input. An all-gather has words, and its input is also its output */
    const struct nf_block *blocks; /* of each rank in turn, of a reduce-scatter or all-gather */
    enum nf_dtype dtype;
    MPI_Op op;             /* MPI_SUM also of what is no reduction */
    MPI_Datatype datatype; /* of the elements, where `op` is not MPI_SUM */
    size_t bytes;      /* of a broadcast, whose elements are words */
    MPI_Comm own;      /* for MPI's own reductions: no other call uses it meanwhile */
    int is_gathered;   /* of nm_reduction */
};

struct nm_result nm_call_run(const struct nm_call *call);

#endif
