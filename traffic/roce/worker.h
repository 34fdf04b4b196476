/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of a RoCE job: its all-reduce uses ordinary RC connections of this host's RDMA device, one to its
 * successor among the workers of its leaf and one from its predecessor; the leaf adds up the messages (docs/reference/roce.md).
 *
 * One thread at a time may use a worker. Every call has a deadline. After an error the array is as before. */
#ifndef NETFOLD_ROCE_WORKER_H
#define NETFOLD_ROCE_WORKER_H

#include <stddef.h>
#include <stdint.h>

#define NR_API __attribute__((visibility("default")))

enum nr_error {
    NR_OK,
    NR_TIMEOUT,    /* the deadline passed: a worker is slow or gone, or the network is */
    NR_JOB_ENDED,   /* the controller ended the job, or refused this worker */
    NR_AGENT,      /* the connection to the agent is lost */
    NR_DEVICE,     /* the RDMA device, or memory for it */
    NR_ASSIGNMENT, /* agent, controller and worker are not of one version */
    NR_MISMATCH,   /* workers called with different arrays, or one skipped a call */
    NR_OVERFLOW,   /* an integer sum is saturated */
    NR_NUMBERS,    /* NaN or infinity, or a dtype that the job's numerics does not support */
    NR_MEMORY,
    NR_LEFT,       /* workers without which the call cannot be completed have left: nr_left_hosts */
};

enum nr_dtype { NR_INT32, NR_FLOAT32 };
enum nr_op { NR_SUM, NR_AVERAGE };

struct nr_options {
    const char *agent;   /* unix:PATH, HOST:PORT, fd:NUMBER, or a serial port's device file */
    const char *device;  /* of ibv_devices; NULL: the one that has the worker's address */
    int timeout;         /* of RC: 4.096 us * 2^timeout; 0: 14, 67 ms */
    int retries;         /* of RC, 1 to 7; 0: 7, which rxe repeats without limit until a call's deadline */
    uint32_t first_psn;  /* of all connections; 0: a random one for each */
    uint64_t epoch_packets; /* of a connection, equal at all workers; then a new epoch begins. 0: 2^23, half of all PSNs */
};

struct nr_statistics {
    uint64_t calls, packets, epochs; /* packets sent, without the device's retransmissions */
};

struct nr_worker;

/* Joins the agent's job, and waits until it is installed. Pass `*worker` to `nr_leave` in any case; it is NULL only without
 * memory. */
NR_API enum nr_error nr_join(struct nr_worker **worker, const struct nr_options *options, double seconds);
/* Replaces the array by its sum or average over all workers, with the same bits at each. */
NR_API enum nr_error nr_all_reduce(struct nr_worker *worker, void *array, size_t elements, enum nr_dtype dtype, enum nr_op op,
                                   double seconds);
/* The same for a float32 gradient. In a job of numerics quarter its sums are approximate, for a quarter of the packets, once a
 * gradient of as many elements was summed in the epoch; nr_all_reduce stays exact there. */
NR_API enum nr_error nr_all_reduce_gradient(struct nr_worker *worker, float *array, size_t elements, enum nr_op op,
                                            double seconds);
/* Of the last error, one line. */
NR_API const char *nr_error_message(const struct nr_worker *worker);
/* After NR_LEFT: the workers, with commas between; as many as have room, then "...". Valid until the next call. */
NR_API const char *nr_left_hosts(const struct nr_worker *worker);
NR_API int nr_rank(const struct nr_worker *worker);
/* Workers whose arrays the last call added up; before the first call, those of the job. */
NR_API int nr_workers(const struct nr_worker *worker);
NR_API struct nr_statistics nr_statistics(const struct nr_worker *worker);
/* Leaves the job and frees all. Waits until the successor has the last sums, or all workers have left: at most 30 s. */
NR_API void nr_leave(struct nr_worker *worker);

#endif
