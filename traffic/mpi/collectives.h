/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The collectives as the network makes them. Each returns whether it made the call, with the call's result in `code`; 0: the call
 * is one that the MPI library has to make, at all ranks. */

#ifndef NETFOLD_MPI_COLLECTIVES_H
#define NETFOLD_MPI_COLLECTIVES_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

int nm_allreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *code);
int nm_reduce_to(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                 int *code);
int nm_bcast(void *buffer, int64_t count, MPI_Datatype datatype, int root, MPI_Comm comm, int *code);
int nm_barrier(MPI_Comm comm, int *code);

/* Counts of elements for each rank: those of one call are all `same` if `each` is NULL. The int or MPI_Count that MPI's functions take. */
struct nm_counts {
    int64_t same;
    const void *each;
    size_t width; /* bytes */
};

int nm_reduce_scatter(const void *send, void *recv, struct nm_counts counts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                      int *code);

/* `places`: where the blocks begin in `recv`, in elements; MPI_Aint where they are as wide. All zero: one behind the other. */
int nm_allgather(const void *send, int64_t count, MPI_Datatype datatype, void *recv, struct nm_counts counts,
                 struct nm_counts places, MPI_Datatype recv_datatype, MPI_Comm comm, int *code);
int nm_iallreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                  MPI_Request *request, int *code);
int nm_ibarrier(MPI_Comm comm, MPI_Request *request, int *code);

#endif
