/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

enum { AREA_BYTES = 4 << 20, CHECK_SLICES = 1000 /* between two looks at whether a process lives */ };

/* Of a rank. Counters of calls: each is written by one process, and waited for by the other one. */
struct mailbox {
    _Alignas(64) _Atomic uint32_t posted;
    _Alignas(64) _Atomic uint32_t finished;
    _Alignas(64) _Atomic uint32_t released;
    int64_t process;
    struct nm_post post;
    struct nm_result result;
};

struct nm_host {
    int ranks;
    size_t bytes;
    struct mailbox *mailboxes; /* the start of the shared memory */
    char *areas;
};

size_t nm_host_area_bytes(void) { return AREA_BYTES; }

void *nm_host_area(struct nm_host *h, int rank) { return h->areas + (size_t)rank * AREA_BYTES; }

static void wake(_Atomic uint32_t *counter) { syscall(SYS_futex, counter, FUTEX_WAKE, 1, NULL, NULL, 0); }

/* Until the counter is `value`; 0: `process` (0: none) is gone. */
static int await_value(_Atomic uint32_t *counter, uint32_t value, int64_t process) {
    const struct timespec slice = {0, (long)(1e9 * NM_SLICE)};
    for (unsigned slices = 1;; slices++) {
        uint32_t found = atomic_load(counter);
        if (found == value) return 1;
        syscall(SYS_futex, counter, FUTEX_WAIT, found, &slice, NULL, 0);
        nm_progress();
        if (process && slices % CHECK_SLICES == 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH) return 0;
    }
}

struct nm_result nm_host_call(struct nm_host *h, int rank, const struct nm_post *post) {
    struct mailbox *box = &h->mailboxes[rank];
    box->post = *post;
    uint32_t number = atomic_load(&box->posted) + 1;
    atomic_store(&box->posted, number);
    wake(&box->posted);
    if (await_value(&box->finished, number, h->mailboxes[0].process)) return box->result;
    struct nm_result gone = {-1, "the first rank of this host has ended"};
    return gone;
}

void nm_host_release(struct nm_host *h, int rank) {
    struct mailbox *box = &h->mailboxes[rank];
    atomic_store(&box->released, atomic_load(&box->finished));
    wake(&box->released);
}

const struct nm_post *nm_host_await(struct nm_host *h, int rank) {
    struct mailbox *box = &h->mailboxes[rank];
    return await_value(&box->posted, atomic_load(&box->finished) + 1, box->process) ? &box->post : NULL;
}

void nm_host_await_release(struct nm_host *h) {
    for (int rank = 1; rank < h->ranks; rank++) {
        struct mailbox *box = &h->mailboxes[rank];
        await_value(&box->released, atomic_load(&box->finished), box->process);
    }
}

void nm_host_finish(struct nm_host *h, int rank, const struct nm_result *result) {
    struct mailbox *box = &h->mailboxes[rank];
    box->result = *result;
    atomic_fetch_add(&box->finished, 1);
    wake(&box->finished);
}

/* ---- opening ---- */

static void *map(int fd, size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The leader's file: nothing to name, and nothing that stays. */
static int open_file(int rank, size_t bytes, const int64_t leader[2]) {
    if (rank == 0) {
        int fd = (int)leader[1];
        return fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 ? fd : -1;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%ld", (long)leader[0], (long)leader[1]);
    return open(path, O_RDWR | O_CLOEXEC);
}

struct nm_host *nm_host_open(MPI_Comm comm) {
    int rank, ranks;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    struct nm_host *h = calloc(1, sizeof *h);
    size_t boxes = ((size_t)ranks * sizeof(struct mailbox) + 4095) / 4096 * 4096;
    size_t bytes = boxes + (size_t)ranks * AREA_BYTES;
    int64_t leader[2] = {getpid(), rank == 0 ? memfd_create("netfold-mpi", MFD_CLOEXEC) : -1};
    if (rank == 0 && leader[1] >= 0 && ftruncate((int)leader[1], (off_t)bytes) != 0) leader[1] = -1;
    PMPI_Bcast(leader, 2, MPI_INT64_T, 0, comm);
    int fd = open_file(rank, bytes, leader);
    void *memory = h && fd >= 0 ? map(fd, bytes) : NULL;
    int good = memory != NULL, all;
    PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm);
    if (fd >= 0) close(fd);
    if (memory && all) {
        *h = (struct nm_host){ranks, bytes, memory, (char *)memory + boxes};
        h->mailboxes[rank].process = getpid();
        PMPI_Barrier(comm);
        return h;
    }
    if (memory) munmap(memory, bytes);
    free(h);
    return NULL;
}

void nm_host_close(struct nm_host *h) {
    munmap(h->mailboxes, h->bytes);
    free(h);
}
