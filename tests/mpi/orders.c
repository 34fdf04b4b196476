/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Calls on several communicators, blocking and nonblocking, which each rank makes in an order of its own. MPI allows the orders that are
 * drawn: calls of one communicator have one order at all ranks, and so have blocking calls; any two others may change places. Arguments:
 * a seed, and how many rounds. Prints the failed checks, and "good". */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    COMMUNICATORS = 4,
    CALLS = 12,
    ELEMENTS = 40,
    SWAPS = 60,
    MAX_RANKS = 8,
    LONG = 40 /* times as many elements of integers */
};
enum kind { ALLREDUCE, BARRIER, BCAST, MAXIMUM, SCATTER, GATHER, BLOCKING, IALLREDUCE = BLOCKING, IBARRIER, IMAXIMUM, KINDS };

struct call {
    int communicator, number, count, has_failed;
    enum kind kind;
    double in[ELEMENTS], out[ELEMENTS];
};

static MPI_Comm communicators[COMMUNICATORS]; /* MPI_COMM_NULL: this rank is not in it */
static int rank, failures;

static uint64_t draw(uint64_t *state, uint64_t below) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

static int is_blocking(const struct call *call) { return call->kind < BLOCKING; }

static int may_change_places(const struct call *a, const struct call *b) {
    return a->communicator != b->communicator && !(is_blocking(a) && is_blocking(b));
}

static double element(int number, int of, int i) { return (number * 31 + of * 7 + i) % 101 - 50; }

static int64_t integer(int number, int of, int i) { return (int64_t)element(number, of, i); }

/* Blocks whose sizes differ, so long that their lanes go to their owners alone. Returns whether all elements are right. */
static int make_blocks(const struct call *call, int own, int size, MPI_Comm comm) {
    static int64_t in[LONG * ELEMENTS * MAX_RANKS], out[LONG * ELEMENTS * MAX_RANKS];
    int counts[MAX_RANKS], places[MAX_RANKS], total = 0, good = 1;
    for (int i = 0; i < size; i++) {
        counts[i] = i == call->number % size ? 0 : LONG * call->count - i;
        if (counts[i] < 0) counts[i] = 0;
        places[i] = total;
        total += counts[i];
    }
    for (int i = 0; i < total; i++) in[i] = integer(call->number, own, i);
    if (call->kind == SCATTER) {
        MPI_Reduce_scatter(in, out, counts, MPI_INT64_T, MPI_SUM, comm);
        for (int i = 0; i < counts[own]; i++) {
            int64_t sum = 0;
            for (int of = 0; of < size; of++) sum += integer(call->number, of, places[own] + i);
            good &= out[i] == sum;
        }
        return good;
    }
    MPI_Allgatherv(in, counts[own], MPI_INT64_T, out, counts, places, MPI_INT64_T, comm);
    for (int of = 0; of < size; of++)
        for (int i = 0; i < counts[of]; i++) good &= out[places[of] + i] == integer(call->number, of, i);
    return good;
}

static void make(struct call *call, MPI_Request *request) {
    MPI_Comm comm = communicators[call->communicator];
    int own, size;
    *request = MPI_REQUEST_NULL;
    if (comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < ELEMENTS; i++) call->in[i] = element(call->number, own, i), call->out[i] = -1;
    if (call->kind == ALLREDUCE) MPI_Allreduce(call->in, call->out, call->count, MPI_DOUBLE, MPI_SUM, comm);
    if (call->kind == BARRIER) MPI_Barrier(comm);
    if (call->kind == BCAST) MPI_Bcast(call->in, call->count, MPI_DOUBLE, 0, comm);
    if (call->kind == SCATTER || call->kind == GATHER) call->has_failed = !make_blocks(call, own, size, comm);
    if (call->kind == MAXIMUM) MPI_Allreduce(call->in, call->out, call->count, MPI_DOUBLE, MPI_MAX, comm);
    if (call->kind == IALLREDUCE) MPI_Iallreduce(call->in, call->out, call->count, MPI_DOUBLE, MPI_SUM, comm, request);
    if (call->kind == IBARRIER) MPI_Ibarrier(comm, request);
    if (call->kind == IMAXIMUM) MPI_Iallreduce(call->in, call->out, call->count, MPI_DOUBLE, MPI_MAX, comm, request);
}

static void check(const struct call *call) {
    MPI_Comm comm = communicators[call->communicator];
    int size;
    if (comm == MPI_COMM_NULL) return;
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < call->count; i++) {
        double sum = 0, largest = -1e9, first = element(call->number, 0, i);
        for (int of = 0; of < size; of++) {
            double value = element(call->number, of, i);
            sum += value;
            largest = value > largest ? value : largest;
        }
        int good = !call->has_failed;
        if (call->kind == ALLREDUCE || call->kind == IALLREDUCE) good = call->out[i] == sum;
        if (call->kind == MAXIMUM || call->kind == IMAXIMUM) good = call->out[i] == largest;
        if (call->kind == BCAST) good = call->in[i] == first;
        if (good) continue;
        failures++;
        printf("rank %d: call %d of kind %d on communicator %d is wrong\n", rank, call->number, call->kind, call->communicator);
        return;
    }
}

static void run_round(uint64_t *shared, uint64_t *own, int round) {
    static struct call calls[CALLS];
    struct call *order[CALLS];
    MPI_Request requests[CALLS];
    for (int i = 0; i < CALLS; i++) {
        calls[i].communicator = (int)draw(shared, COMMUNICATORS);
        calls[i].kind = (enum kind)draw(shared, KINDS);
        calls[i].count = (int)draw(shared, ELEMENTS);
        calls[i].number = round * CALLS + i;
        calls[i].has_failed = 0;
        order[i] = &calls[i];
    }
    for (int i = 0; i < SWAPS; i++) {
        int at = (int)draw(own, CALLS - 1);
        if (!may_change_places(order[at], order[at + 1])) continue;
        struct call *first = order[at];
        order[at] = order[at + 1];
        order[at + 1] = first;
    }
    for (int i = 0; i < CALLS; i++) make(order[i], &requests[i]);
    MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < CALLS; i++) check(&calls[i]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    uint64_t shared = strtoull(argv[1], NULL, 10), own = shared + 1000 * ((uint64_t)rank + 1);
    int rounds = atoi(argv[2]);
    communicators[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &communicators[2]);
    /* The first rank of each host, if NETFOLD_HOST changes with each rank: otherwise one more duplicate. */
    int has_first = argc > 3 ? atoi(argv[3]) > rank : 1;
    MPI_Comm_split(MPI_COMM_WORLD, has_first ? 0 : MPI_UNDEFINED, rank, &communicators[3]);
    for (int round = 0; round < rounds; round++) run_round(&shared, &own, round);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && failures == 0) printf("good\n");
    for (int i = 1; i < COMMUNICATORS; i++)
        if (communicators[i] != MPI_COMM_NULL) MPI_Comm_free(&communicators[i]);
    MPI_Finalize();
    return failures != 0;
}
