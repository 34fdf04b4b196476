/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "collectives.h"

#include <stdio.h>
#include <stdlib.h>

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

/* Of a nonblocking call: the MPI library calls the handler. */
static int print_error(const struct nm_result *result) {
    fprintf(stderr, "netfold: rank %d: a nonblocking call: %s\n", nm_world.rank, result->message);
    return error_code(result);
}

static int finish(const struct nm_call *call, const char *operation) {
    struct nm_result result = nm_queue_run(call);
    return result.status == NM_DONE ? MPI_SUCCESS : raise_error(call->communicator->comm, operation, &result);
}

/* ---- calls ---- */

/* What becomes of a reduction: the same at all ranks that make the same call. */
enum way { BY_MPI, SUMMED /* by switches */, GATHERED };

static enum way way_of(int64_t count, MPI_Datatype datatype, MPI_Op op) {
    int dtype = nm_dtype_of(datatype);
    if (!nm_world.is_active || count < 0 || dtype < 0 || !nm_op_takes(op, (enum nf_dtype)dtype)) return BY_MPI;
    int is_float = dtype == NF_FLOAT32 || dtype == NF_FLOAT64;
    if (op == MPI_SUM && (!is_float || nm_world.float_dtypes >> dtype & 1)) return SUMMED;
    return nm_can_gather((size_t)count, (enum nf_dtype)dtype) ? GATHERED : BY_MPI;
}

static struct nm_call call_of(const struct nm_communicator *c, enum nm_operation operation, int64_t count, int dtype) {
    return (struct nm_call){.communicator = c,
                            .operation = operation,
                            .elements = (size_t)count,
                            .dtype = (enum nf_dtype)dtype,
                            .op = MPI_SUM,
                            .own = c->comm};
}

static struct nm_call reduction_of(const struct nm_communicator *c, enum nm_operation operation, int64_t count,
                                   MPI_Datatype datatype, MPI_Op op) {
    struct nm_call call = call_of(c, operation, count, nm_dtype_of(datatype));
    call.op = op;
    call.datatype = datatype;
    call.is_gathered = way_of(count, datatype, op) == GATHERED;
    return call;
}

int nm_allreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *code) {
    const struct nm_communicator *c = way_of(count, datatype, op) == BY_MPI ? NULL : nm_communicator_of(comm);
    if (!c) return 0;
    struct nm_call call = reduction_of(c, NM_ALLREDUCE, count, datatype, op);
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = recv;
    *code = finish(&call, "MPI_Allreduce");
    return 1;
}

int nm_reduce_to(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                 int *code) {
    const struct nm_communicator *c = way_of(count, datatype, op) == BY_MPI ? NULL : nm_communicator_of(comm);
    if (!c || root < 0 || root >= c->size) return 0;
    struct nm_call call = reduction_of(c, NM_REDUCE, count, datatype, op);
    call.root = root;
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = root == c->rank ? recv : NULL;
    *code = finish(&call, "MPI_Reduce");
    return 1;
}

int nm_barrier(MPI_Comm comm, int *code) {
    const struct nm_communicator *c = nm_communicator_of(comm);
    if (!c) return 0;
    struct nm_call call = call_of(c, NM_BARRIER, 0, NF_INT32);
    *code = finish(&call, "MPI_Barrier");
    return 1;
}

int nm_reduce_scatter_block(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                            int *code) {
    int is_sum = op == MPI_SUM && way_of(count, datatype, op) != BY_MPI;
    const struct nm_communicator *c = is_sum ? nm_communicator_of(comm) : NULL;
    int64_t elements;
    if (!c || __builtin_mul_overflow(count, c->size, &elements) || way_of(elements, datatype, op) == BY_MPI) return 0;
    struct nm_call call = reduction_of(c, NM_REDUCE_SCATTER_BLOCK, elements, datatype, op);
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = recv;
    *code = finish(&call, "MPI_Reduce_scatter_block");
    return 1;
}

/* ---- broadcasts ---- */

enum { BROADCAST_BYTES = 1 << 30 /* MPI's functions that pack have counts of 31 bits */ };

/* Of data with gaps: a copy of their bytes. */
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
    if (size < 0 || __builtin_mul_overflow(count, size, &bytes) || bytes > BROADCAST_BYTES) return 0;
    const struct nm_communicator *c = nm_communicator_of(comm);
    if (!c || root < 0 || root >= c->size) return 0;
    struct nm_call call = call_of(c, NM_BCAST, (bytes + 3) / 4, NF_INT32);
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

/* ---- nonblocking calls ---- */

int nm_iallreduce(const void *send, void *recv, int64_t count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                  MPI_Request *request, int *code) {
    int is_mpis = way_of(count, datatype, op) == BY_MPI;
    const struct nm_communicator *c = is_mpis ? NULL : nm_communicator_of_nonblocking(comm);
    if (!c) return 0;
    struct nm_call call = reduction_of(c, NM_ALLREDUCE, count, datatype, op);
    call.input = send == MPI_IN_PLACE ? recv : send;
    call.output = recv;
    call.own = c->shadow;
    *code = nm_queue_start(&call, print_error, request);
    return 1;
}

int nm_ibarrier(MPI_Comm comm, MPI_Request *request, int *code) {
    const struct nm_communicator *c = nm_communicator_of_nonblocking(comm);
    if (!c) return 0;
    struct nm_call call = call_of(c, NM_BARRIER, 0, NF_INT32);
    call.own = c->shadow;
    *code = nm_queue_start(&call, print_error, request);
    return 1;
}
