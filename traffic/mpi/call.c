/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "datatypes.h"
#include "world.h"

/* What the ranks have to agree on, in 61 bits. */
static int64_t context_of(const struct nm_call *call) {
    const uint64_t parts[] = {
        (uint64_t)call->communicator->id, (uint64_t)call->operation, (uint64_t)call->root, call->elements, call->bytes,
        (uint64_t)nm_op_number(call->op)};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash += parts[i] + UINT64_C(0x9e3779b97f4a7c15);
        hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
        hash ^= hash >> 31;
    }
    return (int64_t)(hash >> 3);
}

/* By the MPI library: the numbers do not fit, and wrap as they do there. */
static struct nm_result reduce_by_mpi(const struct nm_call *call, const void *input, void *output, size_t elements) {
    struct nm_result result = {NM_FAILED, "no memory"};
    size_t bytes = elements * (size_t)nf_itemsize(call->dtype);
    void *scratch = output && input ? NULL : calloc(1, bytes);
    if (!(output && input) && !scratch) return result;
    void *to = output ? output : scratch;
    const void *from = !input ? scratch : input == to ? MPI_IN_PLACE : input;
    if (from == to) from = MPI_IN_PLACE;
    MPI_Datatype datatype = call->op == MPI_SUM ? nm_datatype_of(call->dtype) : call->datatype;
    int code = PMPI_Allreduce(from, to, (int)elements, datatype, call->op, call->own);
    free(scratch);
    return code == MPI_SUCCESS ? (struct nm_result){NM_DONE, ""} : (struct nm_result){NM_FAILED, "MPI's own reduction failed"};
}

static enum nf_kind kind_of(enum nm_operation operation) {
    static const enum nf_kind kinds[] = {
        [NM_ALLREDUCE] = NF_ALL_REDUCE,
        [NM_REDUCE] = NF_REDUCE,
        [NM_BCAST] = NF_BROADCAST,
        [NM_BARRIER] = NF_BARRIER,
        [NM_REDUCE_SCATTER_BLOCK] = NF_REDUCE_SCATTER,
    };
    return kinds[operation];
}

static struct nm_result reduce_segments(const struct nm_call *call, const void *input, void *output) {
    const struct nm_reduction reduction = {.communicator = call->communicator,
                                           .context = context_of(call),
                                           .kind = kind_of(call->operation),
                                           .dtype = call->dtype,
                                           .op = call->op,
                                           .datatype = call->datatype,
                                           .is_gathered = call->is_gathered};
    size_t itemsize = (size_t)nf_itemsize(call->dtype), most = nm_world.segment_bytes / itemsize;
    struct nm_result result = {NM_DONE, ""};
    for (size_t at = 0; at < call->elements && result.status == NM_DONE; at += most) {
        size_t count = call->elements - at < most ? call->elements - at : most;
        const char *from = input ? (const char *)input + at * itemsize : NULL;
        char *to = output ? (char *)output + at * itemsize : NULL;
        result = nm_reduce(&reduction, from, to, count);
        if (result.status == NM_UNFIT) result = reduce_by_mpi(call, from, to, count);
    }
    return result;
}

/* No elements: the ranks meet nevertheless, and see whether they make the same call. */
static struct nm_result meet(const struct nm_call *call) {
    struct nm_call empty = *call;
    empty.elements = 1;
    empty.dtype = NF_INT32;
    empty.op = MPI_SUM;
    empty.is_gathered = 0;
    empty.bytes = SIZE_MAX;
    return reduce_segments(&empty, NULL, NULL);
}

/* A broadcast is a sum to which the others give zeros. */
static struct nm_result broadcast(const struct nm_call *call) {
    int is_whole = call->bytes % 4 == 0 && ((uintptr_t)call->input | (uintptr_t)call->output) % 4 == 0;
    if (is_whole) return reduce_segments(call, call->input, call->output);
    struct nm_result result = {NM_FAILED, "no memory"};
    void *words = calloc(call->elements, 4);
    if (!words) return result;
    if (call->input) memcpy(words, call->input, call->bytes);
    result = reduce_segments(call, call->input ? words : NULL, words);
    if (result.status == NM_DONE && call->output) memcpy(call->output, words, call->bytes);
    free(words);
    return result;
}

static struct nm_result reduce_scatter(const struct nm_call *call) {
    struct nm_result result = {NM_FAILED, "no memory"};
    size_t itemsize = (size_t)nf_itemsize(call->dtype), block = call->elements / (size_t)call->communicator->size * itemsize;
    char *sums = malloc(call->elements * itemsize);
    if (!sums) return result;
    result = reduce_segments(call, call->input, sums);
    if (result.status == NM_DONE) memcpy(call->output, sums + (size_t)call->communicator->rank * block, block);
    free(sums);
    return result;
}

struct nm_result nm_call_run(const struct nm_call *call) {
    if (call->elements == 0) return meet(call);
    if (call->operation == NM_BCAST) return broadcast(call);
    if (call->operation == NM_REDUCE_SCATTER_BLOCK) return reduce_scatter(call);
    return reduce_segments(call, call->input, call->output);
}
