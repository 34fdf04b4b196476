/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Which communicators' calls go to the network: MPI_COMM_WORLD, and those that contain the leader of every host. All their calls
 * have to come in one order at all leaders, as they share one job.
 *
 * MPI orders the calls of one communicator, and blocking calls of single-threaded programs. Calls of several communicators may come in
 * different orders where some are nonblocking, or come from several threads. So nonblocking calls are the MPI library's, and a communicator
 * other than MPI_COMM_WORLD is admitted by its first call, unless one of its ranks has several threads that call. A program that promises one
 * order of all its calls (nm_world) has all of them in the network. */

#ifndef NETFOLD_MPI_COMMUNICATORS_H
#define NETFOLD_MPI_COMMUNICATORS_H

#include <mpi.h>
#include <stdint.h>

struct nm_communicator {
    MPI_Comm comm;
    int is_admitted;
    MPI_Comm shadow; /* a duplicate for MPI's own reductions of nonblocking calls; MPI_COMM_NULL: there are no such calls */
    int64_t id; /* the same at all its ranks */
    int rank, size;
    int *places; /* the number of each rank's host */
    int local_count; /* ranks of this host other than the leader */
    int *local; /* their host ranks */
};

/* NULL: calls of `comm` are the MPI library's. Collective if `comm` was never used before. */
const struct nm_communicator *nm_communicator_of(MPI_Comm comm);

/* The same of a nonblocking call, without communication: NULL also before the first blocking call. */
const struct nm_communicator *nm_communicator_of_nonblocking(MPI_Comm comm);

/* Before `comm` is freed: ends its nonblocking calls. */
void nm_communicator_finish(MPI_Comm comm);

/* Before any call: threads may call at the same time. */
void nm_communicators_start(void);

/* Forgets MPI_COMM_WORLD; others are forgotten when they are freed. */
void nm_communicators_stop(void);

#endif
