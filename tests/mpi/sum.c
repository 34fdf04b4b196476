/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Prints the number of ranks, as a sum of all. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, one = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d\n", sum);
    MPI_Finalize();
    return 0;
}
