/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The functions of MPI that a program finds here before its MPI library's (LD_PRELOAD): they make a call in the network, or pass it on
 * to the library's by its name in MPI's profiling interface. */

#include <mpi.h>

#include "collectives.h"
#include "communicators.h"
#include "queue.h"
#include "world.h"

#define NM_API __attribute__((visibility("default")))

static void start(int is_concurrent) {
    nm_world_start(is_concurrent);
    if (nm_world.is_active) nm_communicators_start();
}

NM_API int MPI_Init(int *argc, char ***argv) {
    int provided;
    /* Nonblocking calls are made by a thread. */
    int code = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    if (code == MPI_SUCCESS) start(0);
    return code;
}

NM_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
    if (code == MPI_SUCCESS) start(required == MPI_THREAD_MULTIPLE);
    return code;
}

NM_API int MPI_Finalize(void) {
    if (nm_world.is_active) {
        nm_queue_stop();
        nm_communicators_stop();
        nm_world_stop();
    }
    return PMPI_Finalize();
}

NM_API int MPI_Comm_free(MPI_Comm *comm) {
    nm_communicator_finish(*comm);
    return PMPI_Comm_free(comm);
}

NM_API int MPI_Comm_disconnect(MPI_Comm *comm) {
    nm_communicator_finish(*comm);
    return PMPI_Comm_disconnect(comm);
}

NM_API int MPI_Barrier(MPI_Comm comm) {
    int code;
    return nm_barrier(comm, &code) ? code : PMPI_Barrier(comm);
}

NM_API int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) {
    int code;
    return nm_ibarrier(comm, request, &code) ? code : PMPI_Ibarrier(comm, request);
}

/* The functions that MPI has with counts of two widths. */
#define COLLECTIVES(suffix, count_type, place_type) \
    NM_API int MPI_Allreduce##suffix(const void *send, void *recv, count_type count, MPI_Datatype datatype, MPI_Op op, \
                                     MPI_Comm comm) { \
        int code; \
        return nm_allreduce(send, recv, count, datatype, op, comm, &code) \
                   ? code \
                   : PMPI_Allreduce##suffix(send, recv, count, datatype, op, comm); \
    } \
    NM_API int MPI_Reduce##suffix(const void *send, void *recv, count_type count, MPI_Datatype datatype, MPI_Op op, int root, \
                                  MPI_Comm comm) { \
        int code; \
        return nm_reduce_to(send, recv, count, datatype, op, root, comm, &code) \
                   ? code \
                   : PMPI_Reduce##suffix(send, recv, count, datatype, op, root, comm); \
    } \
    NM_API int MPI_Bcast##suffix(void *buffer, count_type count, MPI_Datatype datatype, int root, MPI_Comm comm) { \
        int code; \
        return nm_bcast(buffer, count, datatype, root, comm, &code) ? code \
                                                                    : PMPI_Bcast##suffix(buffer, count, datatype, root, comm); \
    } \
    NM_API int MPI_Reduce_scatter_block##suffix(const void *send, void *recv, count_type count, MPI_Datatype datatype, \
                                                MPI_Op op, MPI_Comm comm) { \
        int code; \
        struct nm_counts counts = {count, NULL, 0}; \
        return nm_reduce_scatter(send, recv, counts, datatype, op, comm, &code) \
                   ? code \
                   : PMPI_Reduce_scatter_block##suffix(send, recv, count, datatype, op, comm); \
    } \
    NM_API int MPI_Reduce_scatter##suffix(const void *send, void *recv, const count_type given[], MPI_Datatype datatype, \
                                          MPI_Op op, MPI_Comm comm) { \
        int code; \
        struct nm_counts counts = {0, given, sizeof *given}; \
        return nm_reduce_scatter(send, recv, counts, datatype, op, comm, &code) \
                   ? code \
                   : PMPI_Reduce_scatter##suffix(send, recv, given, datatype, op, comm); \
    } \
    NM_API int MPI_Allgather##suffix(const void *send, count_type count, MPI_Datatype datatype, void *recv, \
                                     count_type recv_count, MPI_Datatype recv_datatype, MPI_Comm comm) { \
        int code; \
        struct nm_counts counts = {recv_count, NULL, 0}, places = {0}; \
        return nm_allgather(send, count, datatype, recv, counts, places, recv_datatype, comm, &code) \
                   ? code \
                   : PMPI_Allgather##suffix(send, count, datatype, recv, recv_count, recv_datatype, comm); \
    } \
    NM_API int MPI_Allgatherv##suffix(const void *send, count_type count, MPI_Datatype datatype, void *recv, \
                                      const count_type given[], const place_type displacements[], MPI_Datatype recv_datatype, \
                                      MPI_Comm comm) { \
        int code; \
        struct nm_counts counts = {0, given, sizeof *given}, places = {0, displacements, sizeof *displacements}; \
        return nm_allgather(send, count, datatype, recv, counts, places, recv_datatype, comm, &code) \
                   ? code \
                   : PMPI_Allgatherv##suffix(send, count, datatype, recv, given, displacements, recv_datatype, comm); \
    } \
    NM_API int MPI_Iallreduce##suffix(const void *send, void *recv, count_type count, MPI_Datatype datatype, MPI_Op op, \
                                      MPI_Comm comm, MPI_Request *request) { \
        int code; \
        return nm_iallreduce(send, recv, count, datatype, op, comm, request, &code) \
                   ? code \
                   : PMPI_Iallreduce##suffix(send, recv, count, datatype, op, comm, request); \
    }

COLLECTIVES(, int, int)
#if MPI_VERSION >= 4
COLLECTIVES(_c, MPI_Count, MPI_Aint)
#endif
