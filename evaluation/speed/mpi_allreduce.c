/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* MPI_Allreduce of floats by size, in the columns of osu_allreduce: the mean of a rank's mean time of a call, and the smallest and
 * the largest of the ranks. Arguments: the time to measure each size for, seconds; then sizes in bytes. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 3, LEAST = 3, MOST = 2000 };

static double seconds_of(const float *in, float *out, int count, int calls) {
    double started = MPI_Wtime();
    for (int i = 0; i < calls; i++) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Wtime() - started;
}

/* As many calls as fill the time, the same at all ranks. */
static int choose_calls(double seconds, double warm_up) {
    double calls = seconds * WARM_UP / warm_up;
    int chosen = calls < LEAST ? LEAST : calls > MOST ? MOST : (int)calls;
    MPI_Bcast(&chosen, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return chosen;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) printf("# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n");
    for (int i = 2; i < argc; i++) {
        int bytes = atoi(argv[i]), count = bytes / (int)sizeof(float);
        float *in = malloc((size_t)bytes), *out = malloc((size_t)bytes);
        for (int k = 0; k < count; k++) in[k] = (float)(k % 100 + rank);
        int calls = choose_calls(atof(argv[1]), seconds_of(in, out, count, WARM_UP));
        MPI_Barrier(MPI_COMM_WORLD);
        double own = 1e6 * seconds_of(in, out, count, calls) / calls, sum, least, most;
        MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Reduce(&own, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        MPI_Reduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        for (int k = 0; k < count; k++) {
            float expected = (float)(ranks * (k % 100) + ranks * (ranks - 1) / 2);
            if (out[k] - expected > 0.01f || expected - out[k] > 0.01f) {
                fprintf(stderr, "rank %d, %d bytes: element %d is %f, not %f\n", rank, bytes, k, (double)out[k],
                        (double)expected);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        if (rank == 0) printf("%-10d %17.2f %17.2f %17.2f %11d\n", bytes, sum / ranks, least, most, calls);
        fflush(stdout);
        free(in);
        free(out);
    }
    MPI_Finalize();
    return 0;
}
