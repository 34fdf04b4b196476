/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The collectives as the network makes them. Each returns whether it made the call, with the call's result in `code`; 0: the call
 * is one that the MPI library has to make, at all ranks. */

#ifndef NETFOLD_MPI_COLLECTIVES_H
#define NETFOLD_MPI_COLLECTIVES_H

#include <mpi.h>
#include <stdint.h>

int nm_allreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *code);
int nm_reduce_to(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                 int *code);
int nm_bcast(void *buffer, int64_t count, MPI_Datatype datatype, int root, MPI_Comm comm, int *code);
int nm_barrier(MPI_Comm comm, int *code);
int nm_reduce_scatter_block(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                            int *code);
int nm_iallreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                  MPI_Request *request, int *code);
int nm_ibarrier(MPI_Comm comm, MPI_Request *request, int *code);

#endif
