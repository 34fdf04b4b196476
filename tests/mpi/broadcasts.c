/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Broadcasts from memory that cannot be written, and of datatypes whose sizes and extents do not fit 31 bits. Prints "good". With an
 * argument, data of more than 2 GiB are sent, too. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int rank, failures;

static void check(int good, const char *what) {
    if (good) return;
    failures++;
    printf("rank %d: %s is wrong\n", rank, what);
}

static void *reserve(size_t bytes) {
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 1);
    return found;
}

/* At the root the pages are read-only, as constants are. */
static void test_read_only(size_t count, size_t offset) {
    char *bytes = reserve(count + 8192);
    memset(bytes, rank == 0 ? 'r' : 0, count + offset);
    if (rank == 0) mprotect(bytes, count + 8192, PROT_READ);
    MPI_Bcast(bytes + offset, (int)count, MPI_CHAR, 0, MPI_COMM_WORLD);
    check(bytes[offset] == 'r' && bytes[offset + count - 1] == 'r', "a broadcast from memory that cannot be written");
    munmap(bytes, count + 8192);
}

/* Two integers that are 3 GiB apart. */
static void test_huge_extent(void) {
    MPI_Datatype apart;
    size_t gap = (size_t)3 << 30;
    MPI_Type_create_hvector(2, 1, (MPI_Aint)gap, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    char *memory = reserve(gap + 4096);
    int *first = (int *)memory, *second = (int *)(memory + gap);
    if (rank == 0) *first = 11, *second = 12;
    MPI_Bcast(memory, 1, apart, 0, MPI_COMM_WORLD);
    check(*first == 11 && *second == 12, "a broadcast of data with a gap of 3 GiB");
    MPI_Type_free(&apart);
    munmap(memory, gap + 4096);
}

/* No items of a datatype of 4 GiB, which has a size beyond 31 bits. */
static void test_no_items(void) {
    MPI_Datatype gibibyte, four;
    MPI_Type_contiguous(1 << 30, MPI_BYTE, &gibibyte);
    MPI_Type_contiguous(4, gibibyte, &four);
    MPI_Type_commit(&four);
    char none = 'n';
    MPI_Bcast(&none, 0, four, 0, MPI_COMM_WORLD);
    check(none == 'n', "a broadcast of no items");
#if MPI_VERSION >= 4
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_BYTE, &empty);
    MPI_Type_commit(&empty);
    MPI_Bcast_c(&none, (MPI_Count)5 << 30, empty, 0, MPI_COMM_WORLD);
    check(none == 'n', "a broadcast of 5 Gi items of no bytes");
    MPI_Type_free(&empty);
#endif
    MPI_Type_free(&gibibyte);
    MPI_Type_free(&four);
}

/* Three integers of a datatype that the MPI library owns, though it has no name. A call that frees it is an error. */
static void test_fortrans_datatypes(void) {
    MPI_Datatype of_nine_digits, three;
    MPI_Type_create_f90_integer(9, &of_nine_digits);
    MPI_Type_contiguous(3, of_nine_digits, &three);
    MPI_Type_commit(&three);
    for (int i = 0; i < 2; i++) {
        int32_t numbers[3] = {rank ? 0 : 1, rank ? 0 : 2, rank ? 0 : 3};
        MPI_Bcast(numbers, 1, three, 0, MPI_COMM_WORLD);
        check(numbers[0] == 1 && numbers[1] == 2 && numbers[2] == 3, "a broadcast of Fortran's integers");
    }
    MPI_Type_free(&three);
}

/* Items with gaps, and without, of more than 2 GiB together. */
static void test_large(int has_gaps) {
    MPI_Datatype item, row;
    size_t extent = has_gaps ? (2 << 20) + 8 : 2 << 20, bytes = 1030 * extent;
    MPI_Type_contiguous(2 << 20, MPI_BYTE, &item);
    MPI_Type_create_resized(item, 0, (MPI_Aint)extent, &row);
    MPI_Datatype whole;
    MPI_Type_contiguous(1030, has_gaps ? row : item, &whole);
    MPI_Type_commit(&whole);
    char *memory = reserve(bytes);
    size_t last = 1029 * extent + (2 << 20) - 1;
    if (rank == 0) memory[0] = 'f', memory[last] = 'l';
    MPI_Bcast(memory, 1, whole, 0, MPI_COMM_WORLD);
    check(memory[0] == 'f' && memory[last] == 'l', has_gaps ? "a broadcast of 2 GiB with gaps" : "a broadcast of 2 GiB");
    MPI_Type_free(&item);
    MPI_Type_free(&row);
    MPI_Type_free(&whole);
    munmap(memory, bytes);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    test_read_only(64, 0);
    test_read_only(1001, 1);
    test_read_only(200000, 0);
    test_huge_extent();
    test_no_items();
    test_fortrans_datatypes();
    if (argc > 1) {
        test_large(0);
        test_large(1);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && failures == 0) printf("good\n");
    MPI_Finalize();
    return failures != 0;
}
