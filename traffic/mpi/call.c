/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "datatypes.h"
#include "world.h"
#include "../engine/numerics/mix.h"

/* Hashes what the ranks have to agree on to 61 bits. */
static int64_t context_of(const struct nm_call *call) {
    const uint64_t parts[] = {
        (uint64_t)call->communicator->id, (uint64_t)call->kind, (uint64_t)call->root, call->elements, call->bytes,
        (uint64_t)nm_op_number(call->op)};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = nf_mix(hash, parts[i]);
    for (int i = 0; call->blocks && i < call->communicator->size; i++) hash = nf_mix(hash, (uint64_t)call->blocks[i].elements);
    return (int64_t)(hash >> 3);
}

static struct nm_reduction reduction_of(const struct nm_call *call) {
    return (struct nm_reduction){.communicator = call->communicator,
                                 .context = context_of(call),
                                 .kind = call->kind,
                                 .dtype = call->dtype,
                                 .op = call->op,
                                 .datatype = call->datatype,
                                 .is_gathered = call->is_gathered};
}

/* Lets the MPI library reduce: the numbers do not fit, and wrap as they do there. */
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

static struct nm_result reduce_segments(const struct nm_call *call, enum nf_form form, const void *input, void *output) {
    struct nm_reduction reduction = reduction_of(call);
    struct nf_block block = {0, call->communicator->places[call->root]};
    if (form != NF_TO_ALL) reduction.blocks = (struct nm_blocks){form, 1, &block};
    size_t itemsize = (size_t)nf_itemsize(call->dtype), most = nm_world.segment_bytes / itemsize;
    struct nm_result result = {NM_DONE, ""};
    size_t at = 0;
    do {
        size_t count = call->elements - at < most ? call->elements - at : most;
        block.elements = (int64_t)count;
        const char *from = input ? (const char *)input + at * itemsize : NULL;
        char *to = output ? (char *)output + at * itemsize : NULL;
        result = nm_reduce(&reduction, from, to, count);
        if (result.status == NM_UNFIT) result = reduce_by_mpi(call, from, to, count);
        at += most;
    } while (at < call->elements && result.status == NM_DONE);
    return result;
}

/* No elements: the ranks meet nevertheless, in the opening, and see whether they make the same call. Members that know no targets
 * make no call without elements. */
static struct nm_result meet(const struct nm_call *call) {
    struct nm_call empty = *call;
    empty.elements = nm_world.has_targets ? 0 : 1;
    empty.dtype = NF_INT32;
    empty.op = MPI_SUM;
    empty.is_gathered = 0;
    empty.bytes = SIZE_MAX;
    return reduce_segments(&empty, NF_TO_ALL, NULL, NULL);
}

/* A broadcast is a gather of one block. Without targets it is a sum to which the others give zeros. */
static struct nm_result broadcast(const struct nm_call *call) {
    int is_whole = call->bytes % 4 == 0 && ((uintptr_t)call->input | (uintptr_t)call->output) % 4 == 0;
    if (is_whole) return reduce_segments(call, NF_GATHER, call->input, call->output);
    struct nm_result result = {NM_FAILED, "no memory"};
    void *words = calloc(call->elements, 4);
    if (!words) return result;
    if (call->input) memcpy(words, call->input, call->bytes);
    result = reduce_segments(call, NF_GATHER, call->input ? words : NULL, words);
    if (result.status == NM_DONE && call->output) memcpy(call->output, words, call->bytes);
    free(words);
    return result;
}

/* ---- blocks ---- */

/* Piece `number` of `pieces` of each block. `own`: where that of this rank begins in the piece and in the array. */
struct cut {
    size_t number, pieces, itemsize, elements;
    struct nf_block *blocks;
    size_t own_at, own_first;
};

static size_t start_of(const struct cut *cut, int64_t elements, size_t number) {
    return (size_t)((unsigned __int128)(uint64_t)elements * number / cut->pieces);
}

/* Copies between the array and the piece, whose blocks follow one another. */
static void copy_piece(const struct nm_call *call, struct cut *cut, char *array, char *piece, int to_piece) {
    size_t first = 0, at = 0;
    for (int i = 0; i < call->communicator->size; i++) {
        int64_t elements = call->blocks[i].elements;
        size_t from = start_of(cut, elements, cut->number), count = start_of(cut, elements, cut->number + 1) - from;
        char *in_array = array + (first + from) * cut->itemsize, *in_piece = piece + at * cut->itemsize;
        memcpy(to_piece ? in_piece : in_array, to_piece ? in_array : in_piece, count * cut->itemsize);
        cut->blocks[i] = (struct nf_block){(int64_t)count, call->blocks[i].owner};
        if (i == call->communicator->rank) cut->own_at = at, cut->own_first = from;
        first += (size_t)elements, at += count;
    }
    cut->elements = at;
}

static void take_own_block(const struct nm_call *call, const struct cut *cut, char *own, const char *piece) {
    size_t size = cut->itemsize, bytes = (size_t)cut->blocks[call->communicator->rank].elements * size;
    memcpy(own + cut->own_first * size, piece + cut->own_at * size, bytes);
}

/* Reduces the blocks piece by piece. A piece has a part of every block, so that the owners take turns in each. */
static struct nm_result reduce_blocks(const struct nm_call *call) {
    struct nm_result result = {NM_FAILED, "no memory"};
    struct cut cut = {.itemsize = (size_t)nf_itemsize(call->dtype)};
    size_t size = (size_t)call->communicator->size, most = nm_world.segment_bytes / cut.itemsize;
    size_t own_bytes = (size_t)call->blocks[call->communicator->rank].elements * cut.itemsize;
    int is_gather = call->kind == NF_ALL_GATHER;
    cut.pieces = call->elements <= most ? 1 : call->elements / (most - size) + 1; /* each block is rounded up */
    cut.blocks = malloc(size * sizeof *cut.blocks);
    char *piece = malloc((call->elements / cut.pieces + size) * cut.itemsize);
    char *own = malloc(own_bytes + 1); /* the output may be a part of the input, of which there are more pieces */
    struct nm_reduction reduction = reduction_of(call);
    reduction.blocks = (struct nm_blocks){is_gather ? NF_GATHER : NF_SCATTER, (int64_t)size, cut.blocks};
    if (piece && own && cut.blocks) result.status = NM_DONE;
    for (; cut.number < cut.pieces && result.status == NM_DONE; cut.number++) {
        copy_piece(call, &cut, (char *)call->input, piece, 1);
        if (cut.elements == 0) continue;
        result = nm_reduce(&reduction, piece, piece, cut.elements);
        if (result.status == NM_UNFIT) {
            copy_piece(call, &cut, (char *)call->input, piece, 1);
            result = reduce_by_mpi(call, piece, piece, cut.elements);
        }
        if (result.status == NM_DONE && is_gather)
            copy_piece(call, &cut, call->output, piece, 0);
        else if (result.status == NM_DONE)
            take_own_block(call, &cut, own, piece);
    }
    if (result.status == NM_DONE && !is_gather) memcpy(call->output, own, own_bytes);
    free(own);
    free(cut.blocks);
    free(piece);
    return result;
}

struct nm_result nm_call_run(const struct nm_call *call) {
    if (call->elements == 0) return meet(call);
    if (call->kind == NF_BROADCAST) return broadcast(call);
    if (call->blocks) return reduce_blocks(call);
    return reduce_segments(call, call->kind == NF_REDUCE ? NF_SCATTER : NF_TO_ALL, call->input, call->output);
}
