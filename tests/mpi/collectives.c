/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Collectives beside what they have to give: small numbers, whose sums are exact at any scale. Prints the failed checks, and "good". */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 16 };

static int rank, size, failures;

static void check(int good, const char *what, int detail) {
    if (good) return;
    failures++;
    printf("rank %d: %s (%d) is wrong\n", rank, what, detail);
}

static int element(int of, int i) { return (i * 7 + of * 13) % 97 - 48; }

static int sum(int ranks, int i) {
    int total = 0;
    for (int of = 0; of < ranks; of++) total += element(of, i);
    return total;
}

#define CHECKS(name, type, datatype) \
    static void fill_##name(type *to, int count) { \
        for (int i = 0; i < count; i++) to[i] = (type)element(rank, i); \
    } \
    static int is_sum_##name(const type *found, int first, int count) { \
        for (int i = 0; i < count; i++) \
            if (found[i] != (type)sum(size, first + i)) return 0; \
        return 1; \
    } \
    /* Blocks of 0, `count` and two `count` elements, and some that leave a gap before them. */ \
    static void test_blocks_of_##name(int count, type *in, type *out, MPI_Comm comm) { \
        int counts[MAX_RANKS], places[MAX_RANKS], first = 0, own = 0; \
        for (int i = 0; i < size; i++) { \
            counts[i] = count * ((i + 1) % 3) / 2; \
            places[i] = first + i; \
            if (i == rank) own = first; \
            first += counts[i]; \
        } \
        type *gathered = malloc(sizeof(type) * (size_t)(first + size)); \
        for (int is_in_place = 0; is_in_place < 2; is_in_place++) { \
            fill_##name(in, first); \
            type *to = is_in_place ? in : out; \
            MPI_Reduce_scatter(is_in_place ? MPI_IN_PLACE : in, to, counts, datatype, MPI_SUM, comm); \
            check(is_sum_##name(to, own, counts[rank]), "MPI_Reduce_scatter of " #name, count); \
            for (int i = 0; i < first + size; i++) gathered[i] = -99; \
            for (int i = 0; i < counts[rank]; i++) out[i] = gathered[places[rank] + i] = (type)element(rank, i); \
            MPI_Allgatherv(is_in_place ? MPI_IN_PLACE : out, counts[rank], datatype, gathered, counts, places, datatype, \
                           comm); \
            int good = 1; \
            for (int of = 0; of < size; of++) { \
                for (int i = 0; i < counts[of]; i++) good &= gathered[places[of] + i] == (type)element(of, i); \
                good &= gathered[places[of] + counts[of]] == (type) - 99; /* the gap */ \
            } \
            check(good, "MPI_Allgatherv of " #name, count); \
            fill_##name(out + rank * count, count); \
            fill_##name(in, count); \
            MPI_Allgather(is_in_place ? MPI_IN_PLACE : in, count, datatype, out, count, datatype, comm); \
            for (int i = 0; i < count * size; i++) good &= out[i] == (type)element(i / count, i % count); \
            check(good, "MPI_Allgather of " #name, count); \
        } \
        free(gathered); \
    } \
    static void test_##name(int count, MPI_Comm comm) { \
        type *in = malloc(sizeof(type) * (size_t)(count * size + 1)), \
             *out = malloc(sizeof(type) * (size_t)(count * size + 1)); \
        fill_##name(in, count); \
        MPI_Allreduce(in, out, count, datatype, MPI_SUM, comm); \
        check(is_sum_##name(out, 0, count), "MPI_Allreduce of " #name, count); \
        MPI_Allreduce(MPI_IN_PLACE, in, count, datatype, MPI_SUM, comm); \
        check(is_sum_##name(in, 0, count), "MPI_Allreduce in place of " #name, count); \
        for (int root = 0; root < size; root += size - 1) { \
            fill_##name(in, count); \
            fill_##name(out, count); \
            /* MPICH 4.0.2 itself fails in place where others are the root, if the data are long. */ \
            const void *send = rank == root && (root == 0 || count < 1000) ? MPI_IN_PLACE : in; \
            MPI_Reduce(send, out, count, datatype, MPI_SUM, root, comm); \
            check(rank != root || is_sum_##name(out, 0, count), "MPI_Reduce of " #name, count); \
            memset(out, 0, sizeof(type) * (size_t)count); \
            MPI_Reduce(in, out, count, datatype, MPI_SUM, root, comm); \
            check(rank != root || is_sum_##name(out, 0, count), "MPI_Reduce of " #name, count); \
        } \
        fill_##name(in, count * size); \
        MPI_Reduce_scatter_block(in, out, count, datatype, MPI_SUM, comm); \
        check(is_sum_##name(out, rank * count, count), "MPI_Reduce_scatter_block of " #name, count); \
        MPI_Reduce_scatter_block(MPI_IN_PLACE, in, count, datatype, MPI_SUM, comm); \
        check(is_sum_##name(in, rank * count, count), "MPI_Reduce_scatter_block in place of " #name, count); \
        test_blocks_of_##name(count, in, out, comm); \
        fill_##name(in, count); \
        MPI_Allreduce(in, out, count, datatype, MPI_MAX, comm); \
        for (int i = 0; i < count; i++) { \
            int largest = -100; \
            for (int of = 0; of < size; of++) largest = element(of, i) > largest ? element(of, i) : largest; \
            if (out[i] != (type)largest) check(0, "MPI_MAX of " #name, i); \
        } \
        free(in); \
        free(out); \
    } \
    static void test_nonblocking_##name(int count, MPI_Comm comm) { \
        type *in = malloc(sizeof(type) * (size_t)(count + 1)), *out = malloc(sizeof(type) * (size_t)(count + 1)); \
        fill_##name(in, count); \
        MPI_Request requests[2]; \
        MPI_Iallreduce(in, out, count, datatype, MPI_SUM, comm, &requests[0]); \
        MPI_Ibarrier(comm, &requests[1]); \
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); \
        check(is_sum_##name(out, 0, count), "MPI_Iallreduce of " #name, count); \
        free(in); \
        free(out); \
    }

CHECKS(float, float, MPI_FLOAT)
CHECKS(double, double, MPI_DOUBLE)
CHECKS(int32, int32_t, MPI_INT32_T)
CHECKS(int64, int64_t, MPI_INT64_T)

static void test_broadcasts(MPI_Comm comm) {
    static char bytes[70001];
    for (int root = 0; root < size; root++) {
        for (int count = 0; count < 70000; count = count * 5 + 3) {
            memset(bytes, rank == root ? 'a' + root : 0, sizeof bytes);
            MPI_Bcast(bytes, count, MPI_CHAR, root, comm);
            int good = rank == root || bytes[count] == 0;
            for (int i = 0; i < count; i++) good &= bytes[i] == 'a' + root;
            check(good, "MPI_Bcast", count);
        }
    }
    /* A vector at the root, and as many consecutive elements at the others. */
    int32_t matrix[8][8];
    MPI_Datatype column, pair;
    MPI_Type_vector(8, 1, 8, MPI_INT32_T, &column);
    MPI_Type_commit(&column);
    MPI_Type_contiguous(2, MPI_INT32_T, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < 64; i++) matrix[i / 8][i % 8] = rank == 0 ? i : -1;
    if (rank == 0)
        MPI_Bcast(matrix, 1, column, 0, comm);
    else
        MPI_Bcast(matrix, 4, pair, 0, comm);
    for (int i = 0; i < 8; i++) check(rank == 0 || matrix[0][i] == 8 * i, "MPI_Bcast of a vector", i);
    MPI_Type_free(&column);
    MPI_Type_free(&pair);
}

/* Bytes and columns, which are datatypes of other sizes or with gaps at some ranks. */
static void test_gathers(MPI_Comm comm) {
    static char bytes[MAX_RANKS * 4001];
    for (int count = 1; count <= 4001; count += 1000) {
        memset(bytes, 0, sizeof bytes);
        memset(bytes + rank * count, 'a' + rank, (size_t)count);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes, count, MPI_CHAR, comm);
        int good = 1;
        for (int i = 0; i < count * size; i++) good &= bytes[i] == 'a' + i / count;
        check(good, "MPI_Allgather of bytes", count);
    }
    enum { ROWS = 600 };
    static int32_t matrix[ROWS][MAX_RANKS], column[ROWS], rows[MAX_RANKS * ROWS];
    MPI_Datatype vector, resized;
    MPI_Type_vector(ROWS, 1, MAX_RANKS, MPI_INT32_T, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(int32_t), &resized);
    MPI_Type_commit(&resized);
    memset(matrix, -1, sizeof matrix);
    for (int i = 0; i < ROWS; i++) column[i] = element(rank, i);
    if (rank == 0)
        MPI_Allgather(column, ROWS, MPI_INT32_T, matrix, 1, resized, comm);
    else
        MPI_Allgather(column, ROWS, MPI_INT32_T, rows, ROWS, MPI_INT32_T, comm);
    for (int i = 0; i < ROWS * size; i++) {
        int found = rank == 0 ? matrix[i % ROWS][i / ROWS] : rows[i];
        if (found != element(i / ROWS, i % ROWS)) check(0, "MPI_Allgather of columns", i);
    }
    check(matrix[0][size] == -1, "the bytes next to the columns", matrix[0][size]);
    MPI_Type_free(&vector);
    MPI_Type_free(&resized);
}

/* Sums of integers that do not fit wrap, as with the MPI library. */
static void test_overflow(MPI_Comm comm) {
    uint32_t in[3] = {0x80000001u, 0xffffffffu, 5}, out[3];
    MPI_Allreduce(in, out, 3, MPI_UINT32_T, MPI_SUM, comm);
    for (int i = 0; i < 3; i++) check(out[i] == in[i] * (uint32_t)size, "a sum that does not fit", i);
    MPI_Allreduce(MPI_IN_PLACE, in, 3, MPI_UINT32_T, MPI_SUM, comm);
    check(memcmp(in, out, sizeof in) == 0, "a sum in place that does not fit", 0);
    /* Only the owner of a block that does not fit finds out. */
    enum { COUNT = 2048 };
    uint32_t *many = malloc(sizeof *many * (size_t)(COUNT * size)), *own = malloc(sizeof *own * COUNT);
    for (int owner = 0; owner < size; owner++) {
        for (int i = 0; i < COUNT * size; i++) many[i] = i == owner * COUNT + 7 ? 0x7fffffffu : 3;
        MPI_Reduce_scatter_block(many, own, COUNT, MPI_UINT32_T, MPI_SUM, comm);
        int good = 1;
        for (int i = 0; i < COUNT; i++) good &= own[i] == many[rank * COUNT + i] * (uint32_t)size;
        check(good, "a reduce-scatter that does not fit", owner);
        MPI_Reduce(many, own, COUNT, MPI_UINT32_T, MPI_SUM, owner, comm);
        for (int i = 0; rank == owner && i < COUNT; i++) good &= own[i] == many[i] * (uint32_t)size;
        check(good, "a reduction that does not fit", owner);
    }
    free(many);
    free(own);
}

/* Operations that hosts make themselves, and the operands that tell them apart. */
static void test_operations(MPI_Comm comm) {
    uint32_t word = rank == 1 ? 0x80000000u : 7u, found, one = 0x80000000u, seven = 7u;
    MPI_Reduce_local(&one, &seven, 1, MPI_UINT32_T, MPI_MAX); /* MPICH 4.0 compares as if they had a sign */
    MPI_Allreduce(&word, &found, 1, MPI_UINT32_T, MPI_MAX, comm);
    check(found == seven, "MPI_MAX of unsigned integers", (int)found);
    MPI_Allreduce(&word, &found, 1, MPI_INT, MPI_MIN, comm);
    check(found == 0x80000000u, "MPI_MIN of signed integers", (int)found);
    int64_t power = rank == 0 ? INT64_MIN / 4 : 2, product = 0;
    MPI_Reduce(&power, &product, 1, MPI_INT64_T, size == 3 ? MPI_PROD : MPI_MIN, size - 1, comm);
    check(rank != size - 1 || product == (size == 3 ? INT64_MIN : INT64_MIN / 4), "a reduction of 64 bits", 0);
    int bits[2] = {1 << rank, rank != 1}, both[2];
    MPI_Allreduce(bits, both, 1, MPI_INT, MPI_BOR, comm);
    MPI_Allreduce(bits + 1, both + 1, 1, MPI_INT, MPI_LAND, comm);
    check(both[0] == (1 << size) - 1 && both[1] == 0, "operations on bits", both[0]);
    double tiny[2] = {rank ? 1e-300 : -1e300, rank ? -0.5 : 0.5}, least[2];
    MPI_Allreduce(tiny, least, 2, MPI_DOUBLE, MPI_MIN, comm);
    check(least[0] == -1e300 && least[1] == -0.5, "MPI_MIN of doubles, which is exact", 0);
    MPI_Request request;
    MPI_Iallreduce(&rank, &found, 1, MPI_INT, MPI_MAX, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check((int)found == size - 1, "MPI_Iallreduce of MPI_MAX", (int)found);
}

/* A message that is outstanding while its receiver is in a collective: only if that lets the MPI library work does the sender reach
 * the collective. */
static void test_progress(MPI_Comm comm) {
    enum { COUNT = 1 << 20 };
    static char data[COUNT];
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(data, COUNT, MPI_CHAR, size - 1, 5, comm, &request);
    } else if (rank == size - 1) {
        memset(data, 'x', COUNT);
        MPI_Send(data, COUNT, MPI_CHAR, 0, 5, comm);
    }
    MPI_Barrier(comm);
    if (rank == 0) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(data[COUNT - 1] == 'x', "a message that a collective overtakes", 0);
    }
}

/* A blocking call comes after the nonblocking ones that were started before it. */
static void test_order(MPI_Comm comm) {
    int started[20], one = 1, total;
    MPI_Request requests[20];
    for (int i = 0; i < 20; i++) {
        started[i] = i;
        MPI_Iallreduce(MPI_IN_PLACE, &started[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
    }
    MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, comm);
    check(total == size, "MPI_Allreduce behind nonblocking ones", total);
    MPI_Waitall(20, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 20; i++) check(started[i] == i * size, "MPI_Iallreduce", i);
}

/* Blocks that together are longer than the memory in which the ranks of a host add up. One element does not fit. */
static void test_long_blocks(MPI_Comm comm) {
    enum { COUNT = 250000 };
    int counts[MAX_RANKS], places[MAX_RANKS], first = 0, good = 1;
    for (int i = 0; i < size; i++) {
        counts[i] = COUNT + i;
        places[i] = first;
        first += counts[i];
    }
    int32_t *array = malloc(sizeof *array * (size_t)first), *whole = malloc(sizeof *whole * (size_t)first);
    for (int is_large = 0; is_large < 2; is_large++) {
        for (int i = 0; i < first; i++) array[i] = element(rank, i);
        if (is_large) array[first - 1] = INT32_MAX;
        MPI_Reduce_scatter(MPI_IN_PLACE, array, counts, MPI_INT32_T, MPI_SUM, comm);
        for (int i = 0; i < counts[rank]; i++) {
            int at = places[rank] + i;
            uint32_t right = is_large && at == first - 1 ? (uint32_t)INT32_MAX * (uint32_t)size : (uint32_t)sum(size, at);
            good &= (uint32_t)array[i] == right;
        }
        check(good, "a long reduce-scatter", is_large);
    }
    for (int i = 0; i < counts[rank]; i++) array[i] = element(rank, i);
    MPI_Allgatherv(array, counts[rank], MPI_INT32_T, whole, counts, places, MPI_INT32_T, comm);
    for (int of = 0; of < size; of++)
        for (int i = 0; i < counts[of]; i++) good &= whole[places[of] + i] == element(of, i);
    check(good, "a long MPI_Allgatherv", 0);
    free(array);
    free(whole);
}

static void test_nonblocking(MPI_Comm comm) {
    MPI_Comm_rank(comm, &rank);
    test_operations(comm);
    for (int count = 0; count < 20000; count = count * 19 + 1) {
        test_nonblocking_float(count, comm);
        test_nonblocking_double(count, comm);
        test_nonblocking_int32(count, comm);
        test_nonblocking_int64(count, comm);
    }
    test_order(comm);
}

static void test_all(MPI_Comm comm) {
    MPI_Comm_rank(comm, &rank);
    for (int count = 0; count < 20000; count = count * 19 + 1) {
        test_float(count, comm);
        test_double(count, comm);
        test_int32(count, comm);
        test_int64(count, comm);
    }
    test_broadcasts(comm);
    test_gathers(comm);
    test_overflow(comm);
    test_progress(comm);
    MPI_Barrier(comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_all(MPI_COMM_WORLD);
    MPI_Comm copy, reversed, self;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, 0, -rank, &reversed);
    test_all(copy);
    test_long_blocks(copy);
    test_all(reversed);
    test_nonblocking(copy);
    test_nonblocking(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &self); /* of one rank each: the MPI library's */
    int one = 1;
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, self);
    check(one == 1, "MPI_Allreduce of one rank", one);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&self);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && failures == 0) printf("good\n");
    MPI_Finalize();
    return failures != 0;
}
