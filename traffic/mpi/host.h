/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The ranks of one host: memory that they share, through which the leader (host rank 0) gets the others' inputs and gives them the
 * results. A pair of leader and rank makes its calls in one order. */

#ifndef NETFOLD_MPI_HOST_H
#define NETFOLD_MPI_HOST_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { NM_MESSAGE_BYTES = 256 };

/* What a rank calls. The ranks of a host must post equal ones, but for `has_input`. */
struct nm_post {
    int64_t context, elements, dtype;
    int64_t has_input; /* 0: zeros */
};

struct nm_result {
    int64_t status; /* enum nm_status of reduce.h */
    char message[NM_MESSAGE_BYTES];
};

struct nm_host;

/* Collective over `ranks`, which are those of one host. NULL at all of them: they share no memory. */
struct nm_host *nm_host_open(MPI_Comm ranks);
void nm_host_close(struct nm_host *h);

/* Memory of `area_bytes` of a rank, for its input; the leader's is for the result. */
void *nm_host_area(struct nm_host *h, int rank);
size_t nm_host_area_bytes(void);

/* At a rank other than the leader: its input is in its area. Waits for the result. After it has read the leader's area, the rank
 * calls nm_host_release. */
struct nm_result nm_host_call(struct nm_host *h, int rank, const struct nm_post *post);
void nm_host_release(struct nm_host *h, int rank);

/* At the leader: waits until the rank has posted a call. NULL: its process is gone. */
const struct nm_post *nm_host_await(struct nm_host *h, int rank);

/* At the leader: waits until no rank reads the leader's area. */
void nm_host_await_release(struct nm_host *h);

/* At the leader: gives a rank the result of its call. */
void nm_host_finish(struct nm_host *h, int rank, const struct nm_result *result);

#endif
