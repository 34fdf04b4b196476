/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* All-gathers, as many as its argument says, and no other collective. Prints "good". */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 16 };

int main(int argc, char **argv) {
    int rank, size, good = 1, all[MAX_RANKS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < atoi(argv[1]); round++) {
        int own = 100 * round + rank;
        MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++) good &= all[i] == 100 * round + i;
    }
    if (!good) printf("rank %d got other blocks\n", rank);
    if (good && rank == 0) puts("good");
    MPI_Finalize();
    return 0;
}
