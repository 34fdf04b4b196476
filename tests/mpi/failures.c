/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that cannot succeed. The first argument says why; with a second one, a folder, errors are returned: each rank that
 * is left writes the error's class to a file there, and waits to be killed. */

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int is(const char *wanted, const char *given) { return strcmp(wanted, given) == 0; }

static int call_and_fail(const char *reason) {
    int numbers[64] = {0}, sums[64];
    if (is(reason, "count")) return MPI_Allreduce(numbers, sums, rank == 1 ? 64 : 63, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (is(reason, "datatype"))
        return MPI_Allreduce(numbers, sums, 8, rank == 1 ? MPI_FLOAT : MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (is(reason, "root")) return MPI_Bcast(numbers, 8, MPI_INT, rank == 1 ? 1 : 0, MPI_COMM_WORLD);
    if (is(reason, "operation"))
        return rank == 1 ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Bcast(numbers, 8, MPI_INT, 0, MPI_COMM_WORLD);
    if (is(reason, "sent more")) return MPI_Allgather(numbers, rank == 1 ? 9 : 8, MPI_INT, sums, 8, MPI_INT, MPI_COMM_WORLD);
    if (is(reason, "sent less")) return MPI_Allgather(numbers, 7, MPI_INT, sums, 8, MPI_INT, MPI_COMM_WORLD);
    if (is(reason, "nonblocking")) {
        MPI_Request request;
        MPI_Iallreduce(numbers, sums, rank == 1 ? 64 : 63, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (is(reason, "killed") && rank == 1) raise(SIGKILL);
    if (is(reason, "exit") && rank == 1) _exit(0);
    if (is(reason, "stopped") && rank == 1) raise(SIGSTOP);
    return MPI_Allreduce(numbers, sums, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    char text[MPI_MAX_ERROR_STRING];
    int one = 1, length, class;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 2) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = call_and_fail(argv[1]);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", argv[2], rank);
    FILE *file = fopen(path, "w");
    fprintf(file, "%s", class == MPI_ERR_OTHER ? "MPI_ERR_OTHER" : code == MPI_SUCCESS ? "success" : text);
    fclose(file);
    for (;;) pause(); /* the launcher kills all ranks when one ends */
}
