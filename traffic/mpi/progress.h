/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting without keeping the MPI library from its own work: a peer may need it to finish a send. */

#ifndef NETFOLD_MPI_PROGRESS_H
#define NETFOLD_MPI_PROGRESS_H

/* Seconds between two calls of nm_progress in a wait. */
#define NM_SLICE 0.001

/* CLOCK_MONOTONIC, seconds. */
double nm_now(void);

/* Lets the MPI library send and receive what is outstanding. */
void nm_progress(void);

/* Calls of nm_progress do nothing before, and after nm_progress_stop. Collective over the job's ranks. */
void nm_progress_start(void);
void nm_progress_stop(void);

#endif
