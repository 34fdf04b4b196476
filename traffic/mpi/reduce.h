/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One reduction: over the ranks of this host in shared memory, over the hosts in the network. */

#ifndef NETFOLD_MPI_REDUCE_H
#define NETFOLD_MPI_REDUCE_H

#include "communicators.h"
#include "host.h"
#include "member.h"
#include "../engine/numerics/dtypes.h"

enum nm_status {
    NM_FAILED = -1,
    NM_DONE,
    NM_UNFIT /* the network does not add these numbers: MPI's own reduction has to. The same at all ranks */
};

/* `context`: what has to be equal at all ranks besides the elements: operation, communicator, root.
 *
 * Switches add. A reduction that is gathered is made by the hosts: each adds its values to zeros, in a field of its own. Then it has those of all
 * hosts, and reduces them, in the same order as the others. */
struct nm_reduction {
    const struct nm_communicator *communicator;
    int64_t context;
    enum nf_kind kind;
    enum nf_dtype dtype;
    MPI_Op op;
    MPI_Datatype datatype; /* of the elements, for operations other than MPI_SUM */
    int is_gathered; /* of operations other than MPI_SUM: always */
    struct nm_blocks blocks; /* of the elements; owners are numbers of hosts. Not where it is gathered */
};

/* Whether a reduction of so many elements is short enough to be gathered. */
int nm_can_gather(size_t elements, enum nf_dtype dtype);

/* The reduction of `elements` at `input` (NULL: zeros, of sums only) over all ranks, to `output` (NULL: not wanted). Both may be the same. At most a segment.
 * One thread at a time. */
struct nm_result nm_reduce(const struct nm_reduction *r, const void *input, void *output, size_t elements);

#endif
