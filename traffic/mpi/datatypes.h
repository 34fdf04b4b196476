/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Which MPI datatypes and operations the network adds, and how data of other layouts become bytes. */

#ifndef NETFOLD_MPI_DATATYPES_H
#define NETFOLD_MPI_DATATYPES_H

#include <mpi.h>
#include <stddef.h>

#include "../engine/numerics/dtypes.h"

/* The elements of a predefined datatype; -1: not one that the network adds. Unsigned integers are added as signed ones. */
int nm_dtype_of(MPI_Datatype datatype);

/* A number of a predefined operation that all ranks give it: handles of Open MPI are addresses. -1: not one that hosts reduce by; 0: MPI_SUM. */
int nm_op_number(MPI_Op op);

/* Whether the operation takes these elements. */
int nm_op_takes(MPI_Op op, enum nf_dtype dtype);

/* The MPI datatype of these elements. */
MPI_Datatype nm_datatype_of(enum nf_dtype dtype);

/* Whether `count` items are consecutive bytes from the buffer's address on, in the order of the datatype's signature. */
int nm_is_contiguous(MPI_Datatype datatype);

#endif
