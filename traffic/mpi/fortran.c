/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Open MPI's Fortran calls the profiling interface (PMPI_...) itself: these stand before its Fortran symbols, and call pmpi.c. MPICH's
 * Fortran calls MPI_... as C programs do. */

#include <mpi.h>

#ifdef OPEN_MPI

#define NM_API __attribute__((visibility("default")))

/* The names that compilers, and the module mpi_f08, call a function by. */
#define ALIASES(lower, upper, parameters) \
    NM_API void lower parameters __attribute__((alias("netfold_" #lower))); \
    NM_API void lower##_ parameters __attribute__((alias("netfold_" #lower))); \
    NM_API void lower##__ parameters __attribute__((alias("netfold_" #lower))); \
    NM_API void upper parameters __attribute__((alias("netfold_" #lower))); \
    NM_API void o##lower##_f parameters __attribute__((alias("netfold_" #lower)));
#define FUNCTION(lower, upper, parameters) \
    void netfold_##lower parameters; \
    ALIASES(lower, upper, parameters) \
    void netfold_##lower parameters

/* Of libmpi: the constants of Fortran are the addresses of these. */
extern int mpi_fortran_in_place_, mpi_fortran_bottom_;

static void *buffer(void *given) {
    if (given == &mpi_fortran_in_place_) return MPI_IN_PLACE;
    return given == &mpi_fortran_bottom_ ? MPI_BOTTOM : given;
}

FUNCTION(mpi_init, MPI_INIT, (MPI_Fint * error)) { *error = MPI_Init(NULL, NULL); }

FUNCTION(mpi_init_thread, MPI_INIT_THREAD, (MPI_Fint * required, MPI_Fint *provided, MPI_Fint *error)) {
    int level = 0;
    *error = MPI_Init_thread(NULL, NULL, *required, &level);
    *provided = level;
}

FUNCTION(mpi_finalize, MPI_FINALIZE, (MPI_Fint * error)) { *error = MPI_Finalize(); }

FUNCTION(mpi_comm_free, MPI_COMM_FREE, (MPI_Fint * comm, MPI_Fint *error)) {
    MPI_Comm freed = PMPI_Comm_f2c(*comm);
    *error = MPI_Comm_free(&freed);
    *comm = PMPI_Comm_c2f(freed);
}

FUNCTION(mpi_comm_disconnect, MPI_COMM_DISCONNECT, (MPI_Fint * comm, MPI_Fint *error)) {
    MPI_Comm freed = PMPI_Comm_f2c(*comm);
    *error = MPI_Comm_disconnect(&freed);
    *comm = PMPI_Comm_c2f(freed);
}

FUNCTION(mpi_allreduce, MPI_ALLREDUCE,
         (void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error)) {
    *error =
        MPI_Allreduce(buffer(send), buffer(recv), *count, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm));
}

FUNCTION(mpi_reduce, MPI_REDUCE,
         (void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *root, MPI_Fint *comm,
          MPI_Fint *error)) {
    *error =
        MPI_Reduce(buffer(send), buffer(recv), *count, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op), *root, PMPI_Comm_f2c(*comm));
}

FUNCTION(mpi_bcast, MPI_BCAST,
         (void *data, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error)) {
    *error = MPI_Bcast(buffer(data), *count, PMPI_Type_f2c(*datatype), *root, PMPI_Comm_f2c(*comm));
}

FUNCTION(mpi_barrier, MPI_BARRIER, (MPI_Fint * comm, MPI_Fint *error)) { *error = MPI_Barrier(PMPI_Comm_f2c(*comm)); }

FUNCTION(mpi_reduce_scatter_block, MPI_REDUCE_SCATTER_BLOCK,
         (void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error)) {
    *error = MPI_Reduce_scatter_block(buffer(send), buffer(recv), *count, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op),
                                      PMPI_Comm_f2c(*comm));
}

FUNCTION(mpi_reduce_scatter, MPI_REDUCE_SCATTER,
         (void *send, void *recv, MPI_Fint *counts, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error)) {
    *error = MPI_Reduce_scatter(buffer(send), buffer(recv), counts, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op),
                                PMPI_Comm_f2c(*comm));
}

FUNCTION(mpi_allgather, MPI_ALLGATHER,
         (void *send, MPI_Fint *count, MPI_Fint *datatype, void *recv, MPI_Fint *recv_count, MPI_Fint *recv_datatype,
          MPI_Fint *comm, MPI_Fint *error)) {
    *error = MPI_Allgather(buffer(send), *count, PMPI_Type_f2c(*datatype), buffer(recv), *recv_count,
                           PMPI_Type_f2c(*recv_datatype), PMPI_Comm_f2c(*comm));
}

FUNCTION(mpi_allgatherv, MPI_ALLGATHERV,
         (void *send, MPI_Fint *count, MPI_Fint *datatype, void *recv, MPI_Fint *counts, MPI_Fint *displacements,
          MPI_Fint *recv_datatype, MPI_Fint *comm, MPI_Fint *error)) {
    *error = MPI_Allgatherv(buffer(send), *count, PMPI_Type_f2c(*datatype), buffer(recv), counts, displacements,
                            PMPI_Type_f2c(*recv_datatype), PMPI_Comm_f2c(*comm));
}

FUNCTION(mpi_iallreduce, MPI_IALLREDUCE,
         (void *send, void *recv, MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request,
          MPI_Fint *error)) {
    MPI_Request started;
    *error = MPI_Iallreduce(buffer(send), buffer(recv), *count, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op),
                            PMPI_Comm_f2c(*comm), &started);
    if (*error == MPI_SUCCESS) *request = PMPI_Request_c2f(started);
}

FUNCTION(mpi_ibarrier, MPI_IBARRIER, (MPI_Fint * comm, MPI_Fint *request, MPI_Fint *error)) {
    MPI_Request started;
    *error = MPI_Ibarrier(PMPI_Comm_f2c(*comm), &started);
    if (*error == MPI_SUCCESS) *request = PMPI_Request_c2f(started);
}

#endif
