/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "communicators.h"

#include <stdlib.h>

#include "queue.h"
#include "world.h"

static int key = MPI_KEYVAL_INVALID;
static int64_t next_id = 1;        /* MPI_COMM_WORLD's is 0 */

static int release(MPI_Comm comm, int keyval, void *value, void *state) {
    struct nm_communicator *c = value;
    (void)comm, (void)keyval, (void)state;
    free(c->local);
    free(c->places);
    free(c);
    return MPI_SUCCESS;
}

/* World ranks of the members. NULL: no memory. */
static int *world_ranks(MPI_Comm comm, int size) {
    MPI_Group group, world;
    int *own = calloc((size_t)size, sizeof *own), *found = calloc((size_t)size, sizeof *found);
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; own && i < size; i++) own[i] = i;
    if (own && found) PMPI_Group_translate_ranks(group, size, own, world, found);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    free(own);
    return found;
}

static int contains(const int *ranks, int count, int rank) {
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank) return 1;
    return 0;
}

/* Whether every host's leader is in it, and no process of another program, which has no part in the job: spawned ones, and those that
 * have connected. Fills in the ranks of this host, and the hosts of all. */
static int covers_hosts(struct nm_communicator *c) {
    const struct nm_world *w = &nm_world;
    int *ranks = world_ranks(c->comm, c->size), covered = 0, has_foreign;
    c->local = calloc((size_t)w->host_size, sizeof *c->local);
    c->places = calloc((size_t)c->size, sizeof *c->places);
    if (!ranks || !c->local || !c->places) PMPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < w->host_count; i++) covered += contains(ranks, c->size, w->leaders[i]);
    for (int i = 1; i < w->host_size; i++)
        if (contains(ranks, c->size, w->host_ranks[i])) c->local[c->local_count++] = i;
    has_foreign = contains(ranks, c->size, MPI_UNDEFINED);
    for (int i = 0; !has_foreign && i < c->size; i++) c->places[i] = w->host_numbers[ranks[i]];
    free(ranks);
    return covered == w->host_count && !has_foreign;
}

/* All ranks of the communicator agree on whether it is admitted, and on its number. */
static void agree(struct nm_communicator *c) {
    int64_t own[2] = {nm_world.is_concurrent && !nm_world.is_ordered, next_id}, all[2];
    PMPI_Allreduce(own, all, 2, MPI_INT64_T, MPI_MAX, c->comm);
    c->is_admitted = !all[0];
    c->id = all[1];
    next_id = all[1] + 1;
}

static struct nm_communicator *find(MPI_Comm comm) {
    struct nm_communicator *c;
    int is_known = 0;
    PMPI_Comm_get_attr(comm, key, &c, &is_known);
    return is_known ? c : NULL;
}

static struct nm_communicator *add(MPI_Comm comm) {
    int is_inter;
    struct nm_communicator *c = calloc(1, sizeof *c);
    if (!c) PMPI_Abort(MPI_COMM_WORLD, 1);
    c->comm = comm;
    c->shadow = MPI_COMM_NULL;
    PMPI_Comm_rank(comm, &c->rank);
    PMPI_Comm_size(comm, &c->size);
    PMPI_Comm_test_inter(comm, &is_inter);
    if (!is_inter && covers_hosts(c)) {
        if (comm == MPI_COMM_WORLD)
            c->is_admitted = 1;
        else
            agree(c);
    }
    if (c->is_admitted && nm_world.takes_nonblocking) PMPI_Comm_dup(comm, &c->shadow);
    PMPI_Comm_set_attr(comm, key, c);
    return c;
}

void nm_communicators_start(void) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release, &key, NULL);
    add(MPI_COMM_WORLD);
}

const struct nm_communicator *nm_communicator_of(MPI_Comm comm) {
    if (!nm_world.is_active || comm == MPI_COMM_NULL || comm == MPI_COMM_SELF) return NULL;
    struct nm_communicator *c = find(comm);
    if (!c) c = add(comm);
    return c->is_admitted ? c : NULL;
}

const struct nm_communicator *nm_communicator_of_nonblocking(MPI_Comm comm) {
    struct nm_communicator *c = nm_world.takes_nonblocking && comm != MPI_COMM_NULL ? find(comm) : NULL;
    return c && c->is_admitted ? c : NULL;
}

void nm_communicator_finish(MPI_Comm comm) {
    struct nm_communicator *c = nm_world.takes_nonblocking && comm != MPI_COMM_NULL ? find(comm) : NULL;
    if (!c || c->shadow == MPI_COMM_NULL) return;
    nm_queue_finish(c);
    PMPI_Comm_free(&c->shadow);
}

void nm_communicators_stop(void) {
    nm_communicator_finish(MPI_COMM_WORLD);
    PMPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    PMPI_Comm_free_keyval(&key);
}
