/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A program that starts processes on two hosts, and collectives of all, and of those alone: they are not of the program's job. Prints
 * "good". */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 2, WORDS = 64 };

extern char **environ;

static int sum_is_right(MPI_Comm comm) {
    int rank, size, total;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Barrier(comm);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm);
    return total == size * (size - 1) / 2;
}

/* Open MPI gives them none of the variables that the program has of its launcher: env does, and a host. */
static void spawn(char *program, MPI_Comm *children) {
    char *commands[CHILDREN], *words[CHILDREN][WORDS], hosts[CHILDREN][32], **arguments[CHILDREN];
    int one_each[CHILDREN];
    MPI_Info none[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        int count = 0;
        snprintf(hosts[i], sizeof hosts[i], "NETFOLD_HOST=h%d", i + 1);
        for (char **variable = environ; *variable; variable++) {
            int is_passed = strncmp(*variable, "NETFOLD_", 8) == 0 || strncmp(*variable, "LD_PRELOAD=", 11) == 0;
            if (is_passed && count < WORDS - 3) words[i][count++] = *variable;
        }
        words[i][count++] = hosts[i];
        words[i][count++] = program;
        words[i][count] = NULL;
        commands[i] = "env";
        arguments[i] = words[i];
        one_each[i] = 1;
        none[i] = MPI_INFO_NULL;
    }
    MPI_Comm_spawn_multiple(CHILDREN, commands, arguments, one_each, none, 0, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parent, other, both;
    MPI_Comm_get_parent(&parent);
    int is_child = parent != MPI_COMM_NULL;
    if (is_child)
        other = parent;
    else
        spawn(argv[0], &other);
    MPI_Intercomm_merge(other, is_child, &both);
    int rank, size, number = 0;
    MPI_Comm_rank(both, &rank);
    MPI_Comm_size(both, &size);
    int good = sum_is_right(both) && sum_is_right(MPI_COMM_WORLD) && getenv("LD_PRELOAD");
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
