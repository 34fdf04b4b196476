/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "progress.h"

/* A nonblocking call, until its request is freed. */
struct entry {
    struct entry *next;
    struct nm_call call;
    struct nm_result result;
    int (*on_error)(const struct nm_result *);
    MPI_Request request;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static int has_thread, is_stopping;
static const struct nm_communicator *running; /* whose call is made; NULL: none is */
static struct entry *first, **end = &first;

static int query(void *state, MPI_Status *status) {
    struct entry *e = state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return e->result.status == NM_DONE ? MPI_SUCCESS : e->on_error(&e->result);
}

static int release(void *state) {
    free(state);
    return MPI_SUCCESS;
}

static int cancel(void *state, int is_complete) {
    (void)state, (void)is_complete; /* collective calls cannot be cancelled */
    return MPI_SUCCESS;
}

static void *run_calls(void *none) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while ((!first || running) && !is_stopping) pthread_cond_wait(&changed, &lock);
        if (!first) break;
        struct entry *e = first;
        first = e->next;
        if (!first) end = &first;
        running = e->call.communicator;
        pthread_mutex_unlock(&lock);
        e->result = nm_call_run(&e->call);
        PMPI_Grequest_complete(e->request);
        pthread_mutex_lock(&lock);
        running = NULL;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return none;
}

/* Whether a call of `communicator` is made, or waits; NULL: of any. With the lock. */
static int is_pending(const struct nm_communicator *communicator) {
    if (running && (!communicator || running == communicator)) return 1;
    for (const struct entry *e = first; e; e = e->next)
        if (!communicator || e->call.communicator == communicator) return 1;
    return 0;
}

/* With the lock. */
static void await_none(const struct nm_communicator *communicator) {
    while (is_pending(communicator)) {
        pthread_mutex_unlock(&lock);
        nm_progress();
        pthread_mutex_lock(&lock);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)(1e9 * NM_SLICE);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (is_pending(communicator)) pthread_cond_timedwait(&changed, &lock, &until);
    }
}

struct nm_result nm_queue_run(const struct nm_call *call) {
    pthread_mutex_lock(&lock);
    await_none(NULL);
    running = call->communicator;
    pthread_mutex_unlock(&lock);
    struct nm_result result = nm_call_run(call);
    pthread_mutex_lock(&lock);
    running = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return result;
}

void nm_queue_finish(const struct nm_communicator *communicator) {
    pthread_mutex_lock(&lock);
    await_none(communicator);
    pthread_mutex_unlock(&lock);
}

int nm_queue_start(const struct nm_call *call, int (*on_error)(const struct nm_result *), MPI_Request *request) {
    struct entry *e = calloc(1, sizeof *e);
    if (!e) return MPI_ERR_NO_MEM;
    e->call = *call;
    e->on_error = on_error;
    int code = PMPI_Grequest_start(query, release, cancel, e, &e->request);
    if (code != MPI_SUCCESS) {
        free(e);
        return code;
    }
    *request = e->request;
    pthread_mutex_lock(&lock);
    if (!has_thread) has_thread = pthread_create(&thread, NULL, run_calls, NULL) == 0;
    *end = e;
    end = &e->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return has_thread ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void nm_queue_stop(void) {
    pthread_mutex_lock(&lock);
    is_stopping = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (has_thread) pthread_join(thread, NULL);
    has_thread = 0;
}
