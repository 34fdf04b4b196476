/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A program that starts another process, and collectives of both: that process is not of the program's job. Prints "good". */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parent, other, both;
    MPI_Comm_get_parent(&parent);
    int is_child = parent != MPI_COMM_NULL;
    if (is_child)
        other = parent;
    else
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(other, is_child, &both);
    int rank, size, total, number = 0;
    MPI_Comm_rank(both, &rank);
    MPI_Comm_size(both, &size);
    MPI_Barrier(both);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, both);
    int good = total == size * (size - 1) / 2;
    if (is_child) number = 7;
    MPI_Bcast(&number, 1, MPI_INT, size - 1, both);
    good &= number == 7;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, both);
    if (rank == 0 && good) printf("good\n");
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return !good;
}
