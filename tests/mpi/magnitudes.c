/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Sums of floats and doubles of all magnitudes: each element is as near to the exact sum as additions in some order would be, wherever
 * larger ones stand beside it. The argument is a seed. Prints the failed checks, and "good". */

#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 30000 };

static int rank, size, failures;

static uint64_t mix(uint64_t seed, uint64_t of, uint64_t i) {
    uint64_t hash = seed * UINT64_C(0x9e3779b97f4a7c15) + of * UINT64_C(0xbf58476d1ce4e5b9) + i * UINT64_C(0x94d049bb133111eb);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

/* The element has a magnitude of its own, which the ranks share for most elements. */
static double element(uint64_t seed, int of, int i, int range) {
    uint64_t drawn = mix(seed, (uint64_t)of, (uint64_t)i), shared = mix(seed, 1000, (uint64_t)i);
    if (shared % 5 == 0) return 0;
    int exponent = (int)((shared % 7 == 0 ? drawn : shared) >> 20) % range;
    double mantissa = 1 + (double)(drawn % 1000000007) / 1000000007;
    return ldexp(drawn >> 63 ? -mantissa : mantissa, exponent);
}

static void check(const char *call, double found, uint64_t seed, int i, int range, int is_single) {
    long double sum = 0, magnitude = 0;
    for (int of = 0; of < size; of++) {
        double value = element(seed, of, i, range);
        if (is_single) value = (float)value;
        sum += value;
        magnitude += fabs(value);
    }
    /* n - 1 additions, in any order (Higham 2002, section 4.2); long double has errors of its own. */
    long double bound = magnitude * (size - 1) * ((is_single ? FLT_EPSILON : DBL_EPSILON) / 2) * (1 + 1e-2L);
    if (fabsl(found - sum) <= bound) return;
    if (failures++ < 3)
        printf("rank %d: %s, element %d: %.17g, but the exact sum is %.17Lg, with a bound of %Lg\n", rank, call, i, found, sum,
               bound);
}

#define TEST(type, datatype, range, is_single) \
    static void test_##type(uint64_t seed, int count, MPI_Comm comm) { \
        static type in[MOST], out[MOST]; \
        int own, block = count / size; \
        MPI_Comm_rank(comm, &own); \
        for (int i = 0; i < count; i++) in[i] = (type)element(seed, own, i, range); \
        MPI_Allreduce(in, out, count, datatype, MPI_SUM, comm); \
        for (int i = 0; i < count; i++) check("MPI_Allreduce of " #type, out[i], seed, i, range, is_single); \
        MPI_Reduce(in, out, count, datatype, MPI_SUM, size - 1, comm); \
        for (int i = 0; own == size - 1 && i < count; i++) check("MPI_Reduce of " #type, out[i], seed, i, range, is_single); \
        MPI_Reduce_scatter_block(in, out, block, datatype, MPI_SUM, comm); \
        for (int i = 0; i < block; i++) \
            check("MPI_Reduce_scatter_block of " #type, out[i], seed, own * block + i, range, is_single); \
        MPI_Request request; \
        MPI_Iallreduce(in, out, count, datatype, MPI_SUM, comm, &request); \
        MPI_Wait(&request, MPI_STATUS_IGNORE); \
        for (int i = 0; i < count; i++) check("MPI_Iallreduce of " #type, out[i], seed, i, range, is_single); \
        MPI_Allreduce(MPI_IN_PLACE, in, count, datatype, MPI_SUM, comm); \
        for (int i = 0; i < count; i++) check("MPI_Allreduce in place of " #type, in[i], seed, i, range, is_single); \
    }

/* Exponents of normal numbers, from 0 on: those below would need a bound of the least number, too. */
TEST(float, MPI_FLOAT, 120, 1)
TEST(double, MPI_DOUBLE, 1015, 0)

/* What a program puts into one call: a norm, an energy, a count. */
static void test_norms(void) {
    double norms[] = {1e20, 1e-3, 1e300, 1.0 / 3}, sums[4];
    float mixed[] = {1e9f, 0.0123f}, totals[2];
    MPI_Allreduce(norms, sums, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(mixed, totals, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++) failures += fabs(sums[i] / size / norms[i] - 1) > size * DBL_EPSILON;
    for (int i = 0; i < 2; i++) failures += fabsf(totals[i] / size / mixed[i] - 1) > size * FLT_EPSILON;
    if (failures) printf("rank %d: small numbers beside large ones are lost: %g, %g\n", rank, sums[1], totals[1]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t seed = strtoull(argv[1], NULL, 10);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    test_norms();
    for (int count = 1; count <= MOST; count = count * 3 + 1) {
        test_float(seed + (uint64_t)count, count, MPI_COMM_WORLD);
        test_double(seed + (uint64_t)count, count, copy);
    }
    MPI_Comm_free(&copy);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && failures == 0) printf("good\n");
    MPI_Finalize();
    return failures != 0;
}
