/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "progress.h"

#include <mpi.h>
#include <time.h>

static MPI_Comm polled = MPI_COMM_NULL;

double nm_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void nm_progress(void) {
    int found;
    if (polled != MPI_COMM_NULL) PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, polled, &found, MPI_STATUS_IGNORE);
}

/* Not of MPI_COMM_SELF: MPICH looks there without letting others make progress. */
void nm_progress_start(void) { PMPI_Comm_dup(MPI_COMM_WORLD, &polled); }

void nm_progress_stop(void) {
    if (polled != MPI_COMM_NULL) PMPI_Comm_free(&polled);
}
