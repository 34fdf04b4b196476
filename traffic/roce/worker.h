/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of a RoCE job: its all-reduce goes over ordinary RC connections of this host's RDMA device, one to the next
 * worker of its leaf and one from the worker before, and the leaf adds up what is sent on them (docs/roce.md).
 *
 * One thread at a time may use a worker. Every call has a deadline. The array is as before on any error. */
#ifndef NETFOLD_ROCE_WORKER_H
#define NETFOLD_ROCE_WORKER_H

#include <stddef.h>
#include <stdint.h>

enum nr_error {
    NR_OK,
    NR_TIMEOUT,    /* the deadline passed: a worker is slow or gone, or the network is */
    NR_JOB_OVER,   /* the controller ended the job, or refused this worker */
    NR_AGENT,      /* no word from the agent any more */
    NR_DEVICE,     /* the RDMA device, or what the kernel gives of it */
    NR_ASSIGNMENT, /* agent, controller and worker do not fit together */
    NR_MISMATCH,   /* workers called with different arrays, or one skipped a call */
    NR_OVERFLOW,   /* an integer sum is at the end of int32's range */
    NR_NUMBERS,    /* NaN or infinity, or a dtype that the job's numerics does not take */
    NR_MEMORY,
};

enum nr_dtype { NR_INT32, NR_FLOAT32 };
enum nr_op { NR_SUM, NR_AVERAGE };

struct nr_options {
    const char *agent;   /* unix:PATH, HOST:PORT, fd:NUMBER, or a serial port's device file */
    const char *device;  /* of ibv_devices; NULL: the one that has the worker's address */
    int timeout;         /* of RC: 4.096 us * 2^timeout; 0: 14, 67 ms */
    int retries;         /* of RC, 1 to 7; 0: 7, which rxe takes for ever: the calls' deadlines end it */
    uint32_t first_psn;  /* of all connections; 0: a random one for each */
    uint64_t epoch_packets; /* of a connection, the same at all workers; then new ones begin. 0: 2^23, half of all PSNs */
};

struct nr_statistics {
    uint64_t calls, packets, epochs; /* packets sent, retransmissions not counted: those are the device's */
};

struct nr_worker;

/* Joins the job that the agent attends, and waits until it is installed. `*worker` is to be given to `nr_leave` in any
 * case; NULL only for want of memory. */
enum nr_error nr_join(struct nr_worker **worker, const struct nr_options *options, double seconds);
/* In place: the sum over all workers, the same bits at each. */
enum nr_error nr_all_reduce(struct nr_worker *worker, void *array, size_t elements, enum nr_dtype dtype, enum nr_op op,
                            double seconds);
/* What went wrong last, in a line. */
const char *nr_why(const struct nr_worker *worker);
int nr_rank(const struct nr_worker *worker);
int nr_workers(const struct nr_worker *worker);
struct nr_statistics nr_statistics(const struct nr_worker *worker);
/* Leaves the job and frees all. Stays until the next worker has its last sums, or all workers have left: at most 30 s. */
void nr_leave(struct nr_worker *worker);

#endif
