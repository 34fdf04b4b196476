/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One reduction: over the ranks of this host in shared memory, over the hosts in the network. */

#ifndef NETFOLD_MPI_REDUCE_H
#define NETFOLD_MPI_REDUCE_H

#include "communicators.h"
#include "host.h"
#include "../engine/numerics/dtypes.h"

enum nm_status {
    NM_FAILED = -1,
    NM_DONE,
    NM_UNFIT /* the network does not add these numbers, or this call: MPI's own reduction has to. The same at all ranks */
};

/* `context`: what has to be equal at all ranks beside the elements: operation, communicator, root.
 *
 * Switches add. Other operations are made by the hosts: each adds the values of all hosts, in fields of their own, to zeros, and then reduces
 * what it has got (nm_is_gathered). */
struct nm_reduction {
    const struct nm_communicator *communicator;
    int64_t context;
    enum nf_dtype dtype;
    MPI_Op op;
    MPI_Datatype datatype; /* of the elements, for operations other than MPI_SUM */
    int is_refused; /* at leaders: NM_UNFIT without a look at the numbers */
};

/* Whether a reduction other than a sum is short enough to go through the network. */
int nm_is_gathered(size_t bytes);

/* The reduction of `elements` at `input` (NULL: zeros, of sums only) over all ranks, to `output` (NULL: not wanted). Both may be the same. At most a segment.
 * One thread at a time. */
struct nm_result nm_reduce(const struct nm_reduction *r, const void *input, void *output, size_t elements);

#endif
