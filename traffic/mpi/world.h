/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The job of a program: which ranks share a host, the worker of each host, and whether calls go to the network at all. */

#ifndef NETFOLD_MPI_WORLD_H
#define NETFOLD_MPI_WORLD_H

#include <mpi.h>

#include "host.h"
#include "member.h"

struct nm_world {
    int is_active;      /* calls go to the network */
    int float_dtypes;   /* nm_member_float_dtypes */
    int has_targets;    /* nm_member_has_targets of all members */
    int is_concurrent;  /* threads of the program may call at the same time */
    int is_ordered;     /* the program promises one order of all calls */
    int takes_nonblocking; /* the same, where the MPI library takes calls from several threads */
    int rank, host_count;
    int host_number;    /* of this host, among the leaders */
    int host_rank, host_size;
    int *leaders;       /* world rank of each host's leader, ascending */
    int *host_numbers;  /* of each world rank's host */
    int *host_ranks;    /* world rank of each rank of this host, ascending */
    struct nm_host *host;     /* NULL: one rank is here alone */
    struct nm_member *member; /* NULL: not the leader */
    size_t segment_bytes;     /* longer arrays are reduced in segments of this size */
};

extern struct nm_world nm_world;

/* After MPI is initialized; collective. `is_concurrent`: the program asked for MPI_THREAD_MULTIPLE. Without a network the program goes
 * on with MPI's own collectives, and one rank prints why; with NETFOLD_MPI_REQUIRED=1 it is aborted. Spawned processes go on with MPI's own,
 * too. */
void nm_world_start(int is_concurrent);

/* Before MPI is finalized; collective. */
void nm_world_stop(void);

#endif
