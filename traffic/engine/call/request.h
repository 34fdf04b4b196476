/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The request of a program for a call, and the outcome of the call. */

#ifndef NETFOLD_REQUEST_H
#define NETFOLD_REQUEST_H

#include <stdint.h>

enum nf_op { NF_SUM, NF_AVERAGE };

/* The collective of the program, for reports alone: what is sent depends on the form. */
enum nf_kind { NF_ALL_REDUCE, NF_REDUCE_SCATTER, NF_ALL_GATHER, NF_BROADCAST, NF_REDUCE, NF_BARRIER };

/* Which workers get the result. Of NF_SCATTER and NF_GATHER the array is blocks, each of one worker, its owner. NF_SCATTER: the
 * owner gets the sums of its block, and the array's other blocks stay. NF_GATHER: the owner gives its block, int32, and gets the
 * others; on an error these are undefined. */
enum nf_form { NF_TO_ALL, NF_SCATTER, NF_GATHER };

struct nf_block {
    int64_t elements, owner; /* a rank */
};

struct nf_request {
    void *array;      /* `elements` of `dtype`; results are written there */
    int64_t elements; /* next ones: enum nf_dtype, nf_op, nf_scheme */
    int64_t dtype, op, scheme, bits;
    /* NULL, or where to write by how much the codes of NF_ROTATED_QUARTER differ from this worker's array: float32, 0 in rows that
     * were not sent so. Undefined after an error */
    float *remainder;
    int64_t follows_all; /* starts when all earlier calls are finished, and is predicted by them, too; equal at all workers */
    /* A call of NF_ROTATED_QUARTER is made as NF_PACKED_HALF, whatever is predicted; equal at all workers */
    int64_t is_warm_up;
    int64_t form; /* enum nf_form */
    int64_t block_count;
    const struct nf_block *blocks; /* NULL for NF_TO_ALL; copied */
    int64_t context; /* equal at all workers: which collective of which group of theirs the call belongs to */
    int64_t kind; /* enum nf_kind */
    double deadline;
    double submitted; /* when */
};

enum nf_status {
    NF_PENDING,
    NF_DONE,
    NF_TIMEOUT,
    NF_MISMATCH, /* the workers' calls differ */
    NF_CALL_DESYNC, /* the workers are in different calls */
    NF_EXHAUSTED, /* the call needs more chunk numbers than an epoch has */
    NF_SUM_OVERFLOW, /* a sum of integers does not fit; the workers stay in step */
    NF_SCALE_OVERFLOW, /* a sum overflowed at a scale that has headroom for all */
    NF_ABORTED, /* nf_core_abort, or an earlier call failed */
    NF_NO_MEMORY,
    NF_STRAGGLED, /* in a job with a quorum: a result of the call is no longer available */
    NF_FLOATS_UNSUPPORTED, /* a node that cannot add floats added a sum of floats */
    NF_WORKERS_LEFT /* workers whose contributions the call needs have left the job */
};

enum { NF_MESSAGE_BYTES = 480 };

struct nf_outcome {
    int64_t status, number;
    int64_t index, total, total_high; /* NF_SUM_OVERFLOW: the element, and its sum of 128 bits */
    int64_t min_contributors, max_contributors, sum_count, contributions; /* with a quorum: of sums; in all of them */
    char message[NF_MESSAGE_BYTES];
};

#endif
