/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Communicators that are freed while a call on them is in flight, which MPI allows: the call ends as if they were not. Prints "good". */

#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 8, CALLS = 4, ELEMENTS = 100000 };

static int data[CALLS][ELEMENTS];

int main(int argc, char **argv) {
    int rank, size, good = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm copy;
        MPI_Request requests[CALLS];
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Barrier(copy);
        for (int i = 0; i < CALLS; i++) {
            for (int j = 0; j < ELEMENTS; j++) data[i][j] = round + j + (i == 1 ? 1 << 30 : 0); /* sums of 1 << 30 do not fit */
            MPI_Iallreduce(MPI_IN_PLACE, data[i], ELEMENTS, MPI_UNSIGNED, MPI_SUM, copy, &requests[i]);
        }
        MPI_Comm_free(&copy);
        MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < CALLS; i++)
            for (int j = 0; j < ELEMENTS; j++)
                good &= (unsigned)data[i][j] == (unsigned)size * (unsigned)(round + j + (i == 1 ? 1 << 30 : 0));
    }
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0 && good) printf("good\n");
    MPI_Finalize();
    return !good;
}
