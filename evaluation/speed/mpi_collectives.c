/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A collective of floats by size, in the columns of osu_allreduce: the mean of a rank's mean time of a call, and the smallest and
 * the largest of the ranks. Arguments: the collective; the time to measure each size for, seconds; then sizes in bytes, of the
 * array that a reduce-scatter divides and an all-gather makes. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 3, LEAST = 3, MOST = 2000 };
enum collective { ALLREDUCE, REDUCE_SCATTER, ALLGATHER, BCAST, BARRIER };

static const char *const NAMES[] = {"allreduce", "reduce-scatter", "allgather", "bcast", "barrier"};

/* `block`: elements of each rank's block; `blocks`: those of all ranks. */
struct call {
    enum collective collective;
    int rank, ranks, count, block;
    int *blocks;
    float *in, *out;
};

static void make(const struct call *c) {
    switch (c->collective) {
    case ALLREDUCE:
        MPI_Allreduce(c->in, c->out, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter(c->in, c->out, c->blocks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(c->in + c->rank * c->block, c->block, MPI_FLOAT, c->out, c->block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case BCAST:
        MPI_Bcast(c->rank ? c->out : c->in, c->count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static double seconds_of(const struct call *c, int calls) {
    double started = MPI_Wtime();
    for (int i = 0; i < calls; i++) make(c);
    return MPI_Wtime() - started;
}

/* As many calls as fill the time, the same at all ranks. */
static int choose_calls(double seconds, double warm_up) {
    double calls = seconds * WARM_UP / warm_up;
    int chosen = calls < LEAST ? LEAST : calls > MOST ? MOST : (int)calls;
    MPI_Bcast(&chosen, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return chosen;
}

/* Element `k` of the output holds element `at` of the inputs, summed up or of one rank. */
static float expected(const struct call *c, int k) {
    int at = c->collective == REDUCE_SCATTER ? c->rank * c->block + k : k;
    if (c->collective == ALLGATHER) return (float)(at % 100 + k / c->block);
    if (c->collective == BCAST) return (float)(at % 100);
    return (float)(c->ranks * (at % 100) + c->ranks * (c->ranks - 1) / 2);
}

static void check(const struct call *c) {
    int elements = c->collective == REDUCE_SCATTER ? c->block : c->count;
    if (c->collective == BARRIER || (c->collective == BCAST && !c->rank)) return;
    for (int k = 0; k < elements; k++) {
        float difference = c->out[k] - expected(c, k);
        if (difference <= 0.01f && difference >= -0.01f) continue;
        fprintf(stderr, "rank %d, %s: element %d is %f, not %f\n", c->rank, NAMES[c->collective], k, (double)c->out[k],
                (double)expected(c, k));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void measure(struct call *c, double seconds) {
    for (int k = 0; k < c->count; k++) c->in[k] = (float)(k % 100 + c->rank);
    int calls = choose_calls(seconds, seconds_of(c, WARM_UP));
    MPI_Barrier(MPI_COMM_WORLD);
    double own = 1e6 * seconds_of(c, calls) / calls, sum, least, most;
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    check(c);
    if (c->rank == 0)
        printf("%-10zu %17.2f %17.2f %17.2f %11d\n", c->count * sizeof(float), sum / c->ranks, least, most, calls);
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct call c = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &c.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &c.ranks);
    while (c.collective < BARRIER && strcmp(argv[1], NAMES[c.collective]) != 0) c.collective++;
    c.blocks = malloc((size_t)c.ranks * sizeof *c.blocks);
    if (c.rank == 0) printf("# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n");
    for (int i = 3; i < argc; i++) {
        int is_whole = c.collective == ALLREDUCE || c.collective == BCAST;
        c.count = atoi(argv[i]) / (int)sizeof(float);
        c.block = c.count / c.ranks;
        if (!is_whole) c.count = c.block * c.ranks;
        for (int rank = 0; rank < c.ranks; rank++) c.blocks[rank] = c.block;
        c.in = calloc((size_t)c.count + 1, sizeof *c.in);
        c.out = calloc((size_t)c.count + 1, sizeof *c.out);
        measure(&c, atof(argv[2]));
        free(c.in);
        free(c.out);
    }
    free(c.blocks);
    MPI_Finalize();
    return 0;
}
