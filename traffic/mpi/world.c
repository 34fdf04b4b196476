/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define PRINT_SECONDS 2.0

struct nm_world nm_world;

enum {
    WHOLE_BYTES = 64 << 20, /* of a segment, where each rank has its host alone */
    CALLS_VERSION = 2 /* grows where ranks of two versions would make other calls of one that the program makes */
};

static int is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

static uint64_t mix(uint64_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Equal at the ranks that share a machine, a network namespace and a name of their host. */
static uint64_t machine_identity(void) {
    char boot[64] = "", network[32];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(boot, sizeof boot, file)) boot[0] = '\0';
        fclose(file);
    }
    struct stat found = {0};
    if (stat("/proc/self/ns/net", &found) != 0) found.st_ino = 0;
    snprintf(network, sizeof network, "%lu", (unsigned long)found.st_ino);
    const char *host = getenv("NETFOLD_HOST");
    return mix(mix(mix(UINT64_C(0xcbf29ce484222325), boot), network), host ? host : "");
}

/* Fills in which ranks share a host. The leader of a host is its lowest rank. */
static int find_hosts(struct nm_world *w) {
    int ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t own = machine_identity(), *all = calloc((size_t)ranks, sizeof *all);
    w->leaders = calloc((size_t)ranks, sizeof *w->leaders);
    w->host_ranks = calloc((size_t)ranks, sizeof *w->host_ranks);
    w->host_numbers = calloc((size_t)ranks, sizeof *w->host_numbers);
    if (!all || !w->leaders || !w->host_ranks || !w->host_numbers) PMPI_Abort(MPI_COMM_WORLD, 1);
    PMPI_Allgather(&own, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    int is_shared = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int first = 0;
        while (all[first] != all[rank]) first++;
        if (first == rank && all[rank] == own) w->host_number = w->host_count;
        w->host_numbers[rank] = first == rank ? w->host_count : w->host_numbers[first];
        if (first == rank) w->leaders[w->host_count++] = rank;
        is_shared |= first != rank;
        if (rank == w->rank) w->host_rank = w->host_size;
        if (all[rank] == own) w->host_ranks[w->host_size++] = rank;
    }
    free(all);
    w->segment_bytes = is_shared ? nm_host_area_bytes() : WHOLE_BYTES;
    return w->host_count > 1;
}

/* ---- the job: at the leaders ---- */

/* The hosts' names, separated by commas. NULL: two leaders are at the same host; `reason`. */
static char *join_names(const char *names, int count, char reason[NM_REASON_BYTES]) {
    char *list = calloc((size_t)count, NM_NAME_BYTES);
    for (int i = 0; list && i < count; i++) {
        const char *name = names + (size_t)i * NM_NAME_BYTES;
        for (int j = 0; j < i; j++) {
            if (strcmp(names + (size_t)j * NM_NAME_BYTES, name) != 0) continue;
            snprintf(reason, NM_REASON_BYTES, "ranks of different machines or network namespaces are all at host '%s'", name);
            free(list);
            return NULL;
        }
        if (i) strcat(list, ",");
        strcat(list, name);
    }
    return list;
}

/* The first leader submits the job. 0 or -1. */
static int submit(struct nm_world *w, MPI_Comm leaders, const char *host, char job[NM_NAME_BYTES],
                  char reason[NM_REASON_BYTES]) {
    int leader, error = 0;
    PMPI_Comm_rank(leaders, &leader);
    char *names = leader == 0 ? calloc((size_t)w->host_count, NM_NAME_BYTES) : NULL;
    PMPI_Gather(host, NM_NAME_BYTES, MPI_CHAR, names, NM_NAME_BYTES, MPI_CHAR, 0, leaders);
    if (leader == 0) {
        char *list = names ? join_names(names, w->host_count, reason) : NULL;
        error = list ? nm_member_submit(w->member, list, job, reason) : -1;
        free(list);
        free(names);
    }
    PMPI_Bcast(&error, 1, MPI_INT, 0, leaders);
    PMPI_Bcast(job, NM_NAME_BYTES, MPI_CHAR, 0, leaders);
    return error;
}

static int least(int number, MPI_Comm comm) {
    int of_all;
    PMPI_Allreduce(&number, &of_all, 1, MPI_INT, MPI_MIN, comm);
    return of_all;
}

static int all_good(int good, MPI_Comm comm) { return least(good, comm); }

/* Whether all leaders have joined. `good`: this one may. */
static int join(struct nm_world *w, int good, MPI_Comm leaders, char reason[NM_REASON_BYTES]) {
    char host[NM_NAME_BYTES] = "", job[NM_NAME_BYTES] = "";
    if (good) w->member = nm_member_open(host, reason);
    if (!all_good(w->member != NULL, leaders)) return 0;
    if (submit(w, leaders, host, job, reason) != 0) return 0;
    return all_good(nm_member_join(w->member, job, reason) == 0, leaders);
}

/* ---- start and end ---- */

/* Until a launcher has read what this rank has printed. MPICH's drops what it has not read when a rank aborts. */
static void await_launcher(void) {
    struct timespec pause = {0, 1000000};
    struct stat found;
    int left = 0, is_pipe = fstat(STDERR_FILENO, &found) == 0 && S_ISFIFO(found.st_mode);
    double until = nm_now() + PRINT_SECONDS;
    while (is_pipe && ioctl(STDERR_FILENO, FIONREAD, &left) == 0 && left > 0 && nm_now() < until) nanosleep(&pause, NULL);
}

/* The first rank that has a reason prints it before any rank can leave the broadcast: one that aborts may end all others. Older ranks
 * make the same calls of MPI. */
static void print_reason(const struct nm_world *w, const char *reason) {
    int own = *reason ? w->rank : INT32_MAX, first;
    char text[NM_REASON_BYTES];
    PMPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == INT32_MAX) first = 0;
    if (w->rank == first) {
        fprintf(stderr, "netfold: collectives are the MPI library's own: rank %d: %s\n", first, reason);
        await_launcher();
    }
    snprintf(text, sizeof text, "%s", reason);
    PMPI_Bcast(text, sizeof text, MPI_CHAR, first, MPI_COMM_WORLD);
    if (is_set("NETFOLD_MPI_REQUIRED")) PMPI_Abort(MPI_COMM_WORLD, 1);
}

static void forget(struct nm_world *w) {
    if (w->member) nm_member_close(w->member);
    if (w->host) nm_host_close(w->host);
    free(w->leaders);
    free(w->host_ranks);
    free(w->host_numbers);
    *w = (struct nm_world){0};
}

/* By MPI_Comm_spawn: the program that it belongs to has the links of its hosts, so that a job of its own would wait for them. */
static int is_spawned(void) {
    MPI_Comm parent;
    PMPI_Comm_get_parent(&parent);
    return parent != MPI_COMM_NULL;
}

void nm_world_start(int is_concurrent) {
    struct nm_world *w = &nm_world;
    char reason[NM_REASON_BYTES] = "";
    const char *chosen = getenv("NETFOLD_MPI");
    int is_wanted = !(chosen && strcmp(chosen, "0") == 0) && !is_spawned();
    /* The first version gives 1. Until all have joined, or none has, all versions make the same calls of MPI: older ranks learn
     * so that newer ones do not join. */
    int version = least(is_wanted ? CALLS_VERSION : 0, MPI_COMM_WORLD);
    if (!version) return;
    if (!find_hosts(w)) {
        forget(w);
        return;
    }
    MPI_Comm of_host, leaders;
    PMPI_Comm_split(MPI_COMM_WORLD, w->host_ranks[0], w->rank, &of_host);
    PMPI_Comm_split(MPI_COMM_WORLD, w->host_rank == 0 ? 0 : MPI_UNDEFINED, w->rank, &leaders);
    int good = version == CALLS_VERSION;
    if (!good) snprintf(reason, sizeof reason, "other ranks have an older netfold, which makes other calls");
    if (leaders != MPI_COMM_NULL) {
        good = join(w, good, leaders, reason);
        PMPI_Comm_free(&leaders);
    }
    if (w->host_size > 1) {
        w->host = nm_host_open(of_host);
        if (!w->host) snprintf(reason, sizeof reason, "the ranks of this host share no memory");
        good = good && w->host;
    }
    int float_dtypes = w->member && good ? nm_member_float_dtypes(w->member) : 0;
    PMPI_Bcast(&float_dtypes, 1, MPI_INT, 0, of_host);
    PMPI_Comm_free(&of_host);
    if (!all_good(good, MPI_COMM_WORLD)) {
        print_reason(w, reason);
        forget(w);
        return;
    }
    int level;
    PMPI_Query_thread(&level);
    w->float_dtypes = float_dtypes;
    w->has_targets = all_good(!w->member || nm_member_has_targets(w->member), MPI_COMM_WORLD);
    w->is_concurrent = is_concurrent;
    w->is_ordered = all_good(is_set("NETFOLD_MPI_ORDERED"), MPI_COMM_WORLD);
    w->takes_nonblocking = w->is_ordered && level == MPI_THREAD_MULTIPLE;
    nm_progress_start();
    w->is_active = 1;
}

void nm_world_stop(void) {
    struct nm_world *w = &nm_world;
    if (!w->is_active) return;
    w->is_active = 0;
    PMPI_Barrier(MPI_COMM_WORLD); /* all have their last results */
    nm_progress_stop();
    forget(w);
}
