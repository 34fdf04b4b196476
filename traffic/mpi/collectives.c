/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datatypes.h"
#include "queue.h"
#include "world.h"

/* ---- errors ---- */

/* A code of the class MPI_ERR_OTHER, with this text where the MPI library allows that: MPICH gives texts to classes of its own only. */
static int error_code(const struct nm_result *result) {
#ifdef MPICH_VERSION
    (void)result;
    return MPI_ERR_OTHER;
#else
    static int code = MPI_SUCCESS;
    char text[MPI_MAX_ERROR_STRING];
    if (code == MPI_SUCCESS) PMPI_Add_error_code(MPI_ERR_OTHER, &code);
    snprintf(text, sizeof text, "netfold: %.200s", result->message);
    PMPI_Add_error_string(code, text);
    return code;
#endif
}

/* By the communicator's error handler. The reason is printed first: the handler may end the program. */
static int raise_error(MPI_Comm comm, const char *operation, const struct nm_result *result) {
    fprintf(stderr, "netfold: rank %d: %s: %s\n", nm_world.rank, operation, result->message);
    int code = error_code(result);
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

/* Prints the error of a nonblocking call, for which the MPI library calls the handler. */
static int print_error(const struct nm_result *result) {
    fprintf(stderr, "netfold: rank %d: a nonblocking call: %s\n", nm_world.rank, result->message);
    return error_code(result);
}

static int finish(const struct nm_call *call, const char *operation) {
    struct nm_result result = nm_queue_run(call);
    return result.status == NM_DONE ? MPI_SUCCESS : raise_error(call->communicator->comm, operation, &result);
}

/* ---- calls ---- */

/* Decides what becomes of a reduction: the same at all ranks that make the same call. */
enum way { BY_MPI, SUMMED /* by switches */, GATHERED };

static enum way way_of(int64_t count, MPI_Datatype datatype, MPI_Op op) {
    int dtype = nm_dtype_of(datatype);
    if (!nm_world.is_active || count < 0 || dtype < 0 || !nm_op_takes(op, (enum nf_dtype)dtype)) return BY_MPI;
    int is_float = dtype == NF_FLOAT32 || dtype == NF_FLOAT64;
    if (op == MPI_SUM && (!is_float || nm_world.float_dtypes >> dtype & 1)) return SUMMED;
    return nm_can_gather((size_t)count, (enum nf_dtype)dtype) ? GATHERED : BY_MPI;
}

static struct nm_call call_of(const struct nm_communicator *c, enum nf_kind kind, int64_t count, int dtype) {
    return (struct nm_call){.communicator = c,
                            .kind = kind,
                            .elements = (size_t)count,
                            .dtype = (enum nf_dtype)dtype,
                            .op = MPI_SUM,
                            .own = c->comm};
}

static struct nm_call reduction_of(const struct nm_communicator *c, enum nf_kind kind, int64_t count, MPI_Datatype datatype,
                                   MPI_Op op) {
    struct nm_call call = call_of(c, kind, count, nm_dtype_of(datatype));
    call.op = op;
    call.datatype = datatype;
    call.is_gathered = way_of(count, datatype, op) == GATHERED;
    return call;
}

int nm_allreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *code) {
    const struct nm_communicator *c = way_of(count, datatype, op) == BY_MPI ? NULL : nm_communicator_of(comm);
    if (!c) return 0;
    struct nm_call call = reduction_of(c, NF_ALL_REDUCE, count, datatype, op);
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = recv;
    *code = finish(&call, "MPI_Allreduce");
    return 1;
}

int nm_reduce_to(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                 int *code) {
    const struct nm_communicator *c = way_of(count, datatype, op) == BY_MPI ? NULL : nm_communicator_of(comm);
    if (!c || root < 0 || root >= c->size) return 0;
    struct nm_call call = reduction_of(c, NF_REDUCE, count, datatype, op);
    call.root = root;
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = root == c->rank ? recv : NULL;
    *code = finish(&call, "MPI_Reduce");
    return 1;
}

int nm_barrier(MPI_Comm comm, int *code) {
    const struct nm_communicator *c = nm_communicator_of(comm);
    if (!c) return 0;
    struct nm_call call = call_of(c, NF_BARRIER, 0, NF_INT32);
    *code = finish(&call, "MPI_Barrier");
    return 1;
}

/* ---- blocks ---- */

enum {
    PACKED_BYTES = 1 << 30, /* at most: MPI's functions that pack have counts of 31 bits */
    MIN_GATHER_HOSTS = 4 /* with fewer, a ring moves clearly fewer bytes */
};

static int64_t count_of(struct nm_counts counts, int rank) {
    if (!counts.each) return counts.same;
    return counts.width == sizeof(int) ? ((const int *)counts.each)[rank] : ((const int64_t *)counts.each)[rank];
}

/* The sum of the counts of all ranks, times `size`; -1: none, or too large. */
static int64_t total_of(struct nm_counts counts, int ranks, int64_t size) {
    int64_t total = 0;
    for (int i = 0; i < ranks; i++)
        if (count_of(counts, i) < 0 || __builtin_add_overflow(total, count_of(counts, i), &total)) return -1;
    return __builtin_mul_overflow(total, size, &total) ? -1 : total;
}

/* Returns the blocks of the ranks in units of `unit` bytes. An element has `size` bytes. The last unit of a block is padded. */
static struct nf_block *blocks_of(const struct nm_communicator *c, struct nm_counts counts, int64_t size, int64_t unit) {
    struct nf_block *blocks = malloc((size_t)c->size * sizeof *blocks);
    if (!blocks) PMPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < c->size; i++)
        blocks[i] = (struct nf_block){(count_of(counts, i) * size + unit - 1) / unit, c->places[i]};
    return blocks;
}

int nm_reduce_scatter(const void *send, void *recv, struct nm_counts counts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                      int *code) {
    if (op != MPI_SUM || !nm_world.is_active || comm == MPI_COMM_NULL) return 0;
    int ranks;
    PMPI_Comm_size(comm, &ranks);
    int64_t elements = total_of(counts, ranks, 1);
    const struct nm_communicator *c = way_of(elements, datatype, op) == BY_MPI ? NULL : nm_communicator_of(comm);
    if (!c) return 0;
    struct nm_call call = reduction_of(c, NF_REDUCE_SCATTER, elements, datatype, op);
    struct nf_block *blocks = blocks_of(c, counts, 1, 1);
    call.blocks = blocks;
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = recv;
    *code = finish(&call, counts.each ? "MPI_Reduce_scatter" : "MPI_Reduce_scatter_block");
    free(blocks);
    return 1;
}

/* ---- broadcasts ---- */

/* Broadcasts a copy of the bytes of data with gaps. */
static int broadcast_packed(struct nm_call *call, void *buffer, int count, MPI_Datatype datatype) {
    int capacity, packed = 0, unpacked = 0, is_root = call->root == call->communicator->rank;
    PMPI_Pack_size(count, datatype, call->own, &capacity);
    char *bytes = malloc((size_t)capacity);
    if (!bytes) PMPI_Abort(MPI_COMM_WORLD, 1);
    if (is_root) PMPI_Pack(buffer, count, datatype, bytes, capacity, &packed, call->own);
    call->input = is_root ? bytes : NULL;
    call->output = is_root ? NULL : bytes;
    int code = finish(call, "MPI_Bcast");
    if (code == MPI_SUCCESS && !is_root) PMPI_Unpack(bytes, (int)call->bytes, &unpacked, buffer, count, datatype, call->own);
    free(bytes);
    return code;
}

int nm_bcast(void *buffer, int64_t count, MPI_Datatype datatype, int root, MPI_Comm comm, int *code) {
    MPI_Count size;
    int64_t bytes;
    if (!nm_world.is_active || count < 0 || datatype == MPI_DATATYPE_NULL) return 0;
    PMPI_Type_size_x(datatype, &size);
    if (size < 0 || __builtin_mul_overflow(count, size, &bytes) || bytes > PACKED_BYTES) return 0;
    const struct nm_communicator *c = nm_communicator_of(comm);
    if (!c || root < 0 || root >= c->size) return 0;
    struct nm_call call = call_of(c, NF_BROADCAST, (bytes + 3) / 4, NF_INT32);
    call.bytes = (size_t)bytes;
    call.root = root;
    if (bytes > 0 && !nm_is_contiguous(datatype)) {
        *code = broadcast_packed(&call, buffer, (int)count, datatype);
        return 1;
    }
    /* The root's buffer may be memory that cannot be written. */
    call.input = root == c->rank ? buffer : NULL;
    call.output = root == c->rank ? NULL : buffer;
    *code = finish(&call, "MPI_Bcast");
    return 1;
}

/* ---- all-gathers ---- */

/* A block of a user's buffer. */
struct part {
    char *at;
    int64_t count;
    MPI_Datatype datatype;
};

static struct part received(void *recv, struct nm_counts counts, struct nm_counts places, MPI_Datatype datatype, int rank) {
    MPI_Aint bound, extent;
    PMPI_Type_get_extent(datatype, &bound, &extent);
    int64_t first = places.each ? count_of(places, rank) : counts.same * rank;
    return (struct part){(char *)recv + first * extent, count_of(counts, rank), datatype};
}

/* Returns the bytes of a part; -1: the datatype is none. */
static int64_t bytes_of(struct part part) {
    MPI_Count size = -1;
    if (part.count == 0) return 0;
    if (part.datatype != MPI_DATATYPE_NULL) PMPI_Type_size_x(part.datatype, &size);
    return size < 0 ? -1 : part.count * size;
}

/* Copies between a user's part and consecutive bytes. */
static void copy_part(struct part part, char *bytes, int64_t size, int is_packed, MPI_Comm comm) {
    int at = 0;
    if (size == 0) return;
    if (nm_is_contiguous(part.datatype))
        memcpy(is_packed ? bytes : part.at, is_packed ? part.at : bytes, (size_t)size);
    else if (is_packed)
        PMPI_Pack(part.at, (int)part.count, part.datatype, bytes, (int)size, &at, comm);
    else
        PMPI_Unpack(bytes, (int)size, &at, part.at, (int)part.count, part.datatype, comm);
}

/* Goes by sizes alone: a rank may have another datatype than the others, of the same size. */
int nm_allgather(const void *send, int64_t count, MPI_Datatype datatype, void *recv, struct nm_counts counts,
                 struct nm_counts places, MPI_Datatype recv_datatype, MPI_Comm comm, int *code) {
    if (!nm_world.is_active || !nm_world.has_targets || nm_world.host_count < MIN_GATHER_HOSTS) return 0;
    if (comm == MPI_COMM_NULL || recv_datatype == MPI_DATATYPE_NULL) return 0;
    MPI_Count size;
    int ranks;
    PMPI_Comm_size(comm, &ranks);
    PMPI_Type_size_x(recv_datatype, &size);
    int64_t bytes = size < 0 ? -1 : total_of(counts, ranks, size);
    const struct nm_communicator *c = bytes < 0 || bytes > PACKED_BYTES ? NULL : nm_communicator_of(comm);
    if (!c) return 0;
    struct nf_block *blocks = blocks_of(c, counts, size, 4);
    int64_t words = 0, own_at = 0;
    for (int i = 0; i < c->size; words += blocks[i++].elements)
        if (i == c->rank) own_at = words;
    int32_t *all = calloc((size_t)words + 1, 4);
    if (!all) PMPI_Abort(MPI_COMM_WORLD, 1);
    struct part own = {(char *)send, count, datatype};
    if (send == MPI_IN_PLACE) own = received(recv, counts, places, recv_datatype, c->rank);
    int64_t own_bytes = count_of(counts, c->rank) * size;
    int is_as_received = bytes_of(own) == own_bytes;
    if (is_as_received) copy_part(own, (char *)(all + own_at), own_bytes, 1, comm);
    struct nm_call call = call_of(c, NF_ALL_GATHER, words, NF_INT32);
    /* A rank that sends more or less than it receives from itself makes a call that differs from all others. */
    call.bytes = is_as_received ? (size_t)bytes : SIZE_MAX - 1 - (size_t)c->rank;
    call.blocks = blocks;
    call.input = call.output = all;
    *code = finish(&call, places.each ? "MPI_Allgatherv" : "MPI_Allgather");
    int64_t at = 0;
    for (int i = 0; *code == MPI_SUCCESS && i < c->size; at += blocks[i++].elements)
        if (i != c->rank || send != MPI_IN_PLACE)
            copy_part(received(recv, counts, places, recv_datatype, i), (char *)(all + at), count_of(counts, i) * size, 0,
                      comm);
    free(all);
    free(blocks);
    return 1;
}

/* ---- nonblocking calls ---- */

int nm_iallreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                  MPI_Request *request, int *code) {
    int is_mpis = way_of(count, datatype, op) == BY_MPI;
    const struct nm_communicator *c = is_mpis ? NULL : nm_communicator_of_nonblocking(comm);
    if (!c) return 0;
    struct nm_call call = reduction_of(c, NF_ALL_REDUCE, count, datatype, op);
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = recv;
    call.own = c->shadow;
    *code = nm_queue_start(&call, print_error, request);
    return 1;
}

int nm_ibarrier(MPI_Comm comm, MPI_Request *request, int *code) {
    const struct nm_communicator *c = nm_communicator_of_nonblocking(comm);
    if (!c) return 0;
    struct nm_call call = call_of(c, NF_BARRIER, 0, NF_INT32);
    call.own = c->shadow;
    *code = nm_queue_start(&call, print_error, request);
    return 1;
}
