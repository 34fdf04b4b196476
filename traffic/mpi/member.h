/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The worker of a host: its engine, and the agent that is the job's member for it (agent.py, a process of its own). */

#ifndef NETFOLD_MPI_MEMBER_H
#define NETFOLD_MPI_MEMBER_H

#include <stddef.h>

#include "../agent/messages.h"
#include "../engine/io/engine.h"

enum { NM_NAME_BYTES = 128, NM_REASON_BYTES = NF_MESSAGE_BYTES };

struct nm_member;

/* Starts the agent; `host`: the name of this machine in the fabric. NULL: it cannot be started, or knows no host; `reason`. */
struct nm_member *nm_member_open(char host[NM_NAME_BYTES], char reason[NM_REASON_BYTES]);

/* Lets the agent submit a job of these hosts (separated by commas). 0, or -1 and `reason`. */
int nm_member_submit(struct nm_member *m, const char *hosts, char job[NM_NAME_BYTES], char reason[NM_REASON_BYTES]);

/* Joins the job; waits for the first epoch. 0, or -1 and `reason`. */
int nm_member_join(struct nm_member *m, const char *job, char reason[NM_REASON_BYTES]);

/* Floats whose sums are the nodes' at any length, as bits 1 << enum nf_dtype: nodes add them as MPI does, or the user has chosen how. */
int nm_member_float_dtypes(struct nm_member *m);

/* Whether epochs of the job may have targets. */
int nm_member_has_targets(struct nm_member *m);

/* The workers that get the result of a call. `form` NF_TO_ALL: all. Else the array is blocks, and each has an owner. */
struct nm_blocks {
    enum nf_form form;
    int64_t count;
    const struct nf_block *blocks;
};

/* Reduces `elements` of `dtype` at `array` over all workers, in place. The outcome's status is NF_DONE, or the array is as before, but
 * blocks of others may be overwritten. Its message says why. One thread at a time. */
struct nf_outcome nm_member_reduce(struct nm_member *m, void *array, size_t elements, enum nf_dtype dtype, int64_t context,
                                   enum nf_kind kind, struct nm_blocks blocks);

/* Ends the job for all its workers. */
void nm_member_fail(struct nm_member *m, const char *reason);

/* Leaves the job, and ends the agent. */
void nm_member_close(struct nm_member *m);

#endif
