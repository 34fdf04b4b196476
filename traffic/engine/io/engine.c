/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "sockets.h"

#ifndef NF_SOURCES
#define NF_SOURCES ""
#endif

const char *nf_sources(void) { return NF_SOURCES; }

/* A call that runs in the background. */
struct tracked {
    struct tracked *next;
    struct nf_call *call;
};

struct nf_engine {
    struct nf_core *core;
    struct sockets *sockets;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a call is finished, or the I/O loop stopped or may continue */
    pthread_t thread;
    int has_thread, stopped;
    int is_driver_active; /* a thread is in the I/O loop, */
    int polling; /* and waits in ppoll, without the lock */
    int paused;  /* threads that want the I/O loop to pause */
    int waiters; /* threads that wait for `changed` */
    int lock_waiters; /* threads that wait for the lock (atomic) */
    int wake_fd;    /* eventfd */
    struct tracked *first, *last;
};

static double monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct timespec timespec_of(double seconds) {
    if (seconds < 0) seconds = 0;
    if (seconds > 1e9) seconds = 1e9;
    time_t whole = (time_t)seconds;
    return (struct timespec){whole, (long)(1e9 * (seconds - (double)whole))};
}

static void engine_lock(struct nf_engine *e) {
    __atomic_add_fetch(&e->lock_waiters, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&e->lock);
    __atomic_sub_fetch(&e->lock_waiters, 1, __ATOMIC_RELAXED);
}

static void engine_unlock(struct nf_engine *e) { pthread_mutex_unlock(&e->lock); }

static void notify_waiters(struct nf_engine *e) {
    if (e->waiters) pthread_cond_broadcast(&e->changed);
}

/* Waits until `changed` is signaled or CLOCK_MONOTONIC is `until`. */
static void wait_changed(struct nf_engine *e, double until) {
    e->waiters++;
    if (until >= NF_UNKNOWN) {
        pthread_cond_wait(&e->changed, &e->lock);
    } else {
        struct timespec t = timespec_of(until);
        pthread_cond_timedwait(&e->changed, &e->lock, &t);
    }
    e->waiters--;
}

static void wake_poll(struct nf_engine *e) {
    uint64_t one = 1;
    if (e->polling && write(e->wake_fd, &one, sizeof one) < 0) return; /* full: it is awake */
}

static int is_finished(const struct nf_call *call) { return nf_core_outcome(call)->status != NF_PENDING; }

/* Returns whether there is work that no thread waits for. */
static int background_pending(const struct nf_engine *e) {
    if (nf_core_totals(e->core).must_serve_handover) return 1;
    for (const struct tracked *t = e->first; t; t = t->next)
        if (!is_finished(t->call)) return 1;
    return 0;
}

static int wait_for(struct pollfd *polled, int count, double seconds) {
    struct timespec t = timespec_of(seconds);
    return ppoll(polled, (nfds_t)count, &t, NULL);
}

/* Waits for packets without the lock, up to `until`; with a `delay` waits for that time alone. Returns whether a signal
 * arrived. */
static int poll_sockets(struct nf_engine *e, double delay, double until) {
    struct pollfd polled[NF_TREES_MAX + 1] = {{e->wake_fd, POLLIN, 0}};
    int count = 1 + sockets_poll(e->sockets, polled + 1);
    e->polling = 1;
    engine_unlock(e);
    double left = until - monotonic();
    int found = delay > 0 ? wait_for(polled, 1, delay < left ? delay : left) : wait_for(polled, count, left);
    int interrupted = found < 0 && errno == EINTR;
    uint64_t value;
    if (found > 0 && polled[0].revents && read(e->wake_fd, &value, sizeof value) < 0) interrupted = 0;
    engine_lock(e);
    e->polling = 0;
    if (e->paused) notify_waiters(e);
    return interrupted;
}

/* Runs until `call` is finished (NULL: no background work is left), `until`, a signal, or another epoch is needed. */
static void run_io_loop(struct nf_engine *e, const struct nf_call *call, double until) {
    int64_t pending = nf_core_totals(e->core).pending;
    int has_coalesced = 0; /* since packets were received */
    e->is_driver_active = 1;
    if (!e->paused) nf_core_process(e->core, monotonic()); /* a call may have been submitted meanwhile */
    for (;;) {
        if (e->paused) {
            wait_changed(e, NF_UNKNOWN);
            if (e->stopped) break;
            continue;
        }
        int64_t received = sockets_receive(e->sockets, e->core, monotonic());
        double now = monotonic();
        nf_core_process(e->core, now);
        sockets_send(e->sockets, e->core, now);
        if (sockets_error(e->sockets)) nf_core_abort(e->core);
        struct nf_totals totals = nf_core_totals(e->core);
        if (totals.pending != pending) notify_waiters(e);
        pending = totals.pending;
        if (e->stopped || totals.unusable_epoch || now >= until) break;
        if (call ? is_finished(call) : !background_pending(e)) break;
        if (received && __atomic_load_n(&e->lock_waiters, __ATOMIC_RELAXED)) {
            engine_unlock(e);
            sched_yield();
            engine_lock(e);
        } else if (!sockets_more(e->sockets)) {
            int blocked = sockets_blocked(e->sockets);
            double next = blocked ? NF_UNKNOWN : nf_core_next_deadline(e->core, now);
            double delay = blocked || (has_coalesced && !received) ? 0 : nf_core_coalescing_delay(e->core);
            double due = sockets_next_due(e->sockets);
            has_coalesced = delay > 0;
            if (due < next) next = due;
            if (poll_sockets(e, delay, next < until ? next : until)) break;
        }
    }
    e->is_driver_active = 0;
    notify_waiters(e);
}

static void *background_thread(void *engine) {
    struct nf_engine *e = engine;
    engine_lock(e);
    while (!e->stopped) {
        if (e->is_driver_active || !background_pending(e) || nf_core_totals(e->core).unusable_epoch)
            wait_changed(e, NF_UNKNOWN);
        else
            run_io_loop(e, NULL, NF_UNKNOWN);
    }
    engine_unlock(e);
    return NULL;
}

struct nf_engine *nf_engine_create(void) {
    struct nf_engine *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    pthread_condattr_t monotonically;
    pthread_condattr_init(&monotonically);
    pthread_condattr_setclock(&monotonically, CLOCK_MONOTONIC);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, &monotonically);
    pthread_condattr_destroy(&monotonically);
    e->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    e->core = nf_core_create();
    e->sockets = sockets_create();
    if (e->wake_fd >= 0 && e->core && e->sockets) return e;
    nf_engine_destroy(e);
    return NULL;
}

/* Holds the driver: no thread waits in ppoll until resume_driver. */
static void pause_driver(struct nf_engine *e) {
    e->paused++;
    while (e->polling) {
        wake_poll(e);
        wait_changed(e, NF_UNKNOWN);
    }
}

static void resume_driver(struct nf_engine *e) {
    e->paused--;
    notify_waiters(e);
}

void nf_engine_close_sockets(struct nf_engine *e) {
    engine_lock(e);
    pause_driver(e);
    sockets_close(e->sockets);
    resume_driver(e);
    engine_unlock(e);
}

static void start_thread(struct nf_engine *e) {
    if (!e->has_thread) e->has_thread = !pthread_create(&e->thread, NULL, background_thread, e);
}

/* Needs the lock. */
static void close_epoch(struct nf_engine *e) {
    pause_driver(e);
    sockets_close(e->sockets);
}

/* Needs the lock. `error` is of the sockets that were opened since close_epoch. */
static int open_epoch(struct nf_engine *e, const struct nf_assignment *assignment, int error) {
    if (!error && nf_core_assign(e->core, assignment, monotonic())) error = ENOMEM;
    if (nf_core_totals(e->core).must_serve_handover) start_thread(e);
    resume_driver(e);
    notify_waiters(e);
    return error;
}

int nf_engine_assign(struct nf_engine *e, const struct nf_assignment *assignment, const int32_t *fds, int64_t count) {
    engine_lock(e);
    close_epoch(e);
    int error = open_epoch(e, assignment, sockets_open(e->sockets, fds, count, assignment->lanes));
    engine_unlock(e);
    return error;
}

int nf_engine_assign_link(struct nf_engine *e, const struct nf_assignment *assignment, const struct nf_link_end *end,
                          int64_t port, const struct sockaddr_in *peers, int64_t count) {
    engine_lock(e);
    close_epoch(e);
    int error = open_epoch(e, assignment, sockets_open_link(e->sockets, end, port, peers, count, assignment->lanes));
    engine_unlock(e);
    return error;
}

void nf_engine_set_departures(struct nf_engine *e, int64_t epoch, const struct nf_departures *departures) {
    engine_lock(e);
    nf_core_set_departures(e->core, epoch, departures);
    notify_waiters(e);
    wake_poll(e);
    engine_unlock(e);
}

struct nf_call *nf_engine_submit(struct nf_engine *e, const struct nf_request *request, int64_t background) {
    struct tracked *tracked = background ? malloc(sizeof *tracked) : NULL;
    if (background && !tracked) return NULL;
    engine_lock(e);
    struct nf_call *call = nf_core_submit(e->core, request);
    if (call && background) {
        *tracked = (struct tracked){NULL, call};
        if (e->last)
            e->last->next = tracked;
        else
            e->first = tracked;
        e->last = tracked;
        tracked = NULL;
        start_thread(e);
        notify_waiters(e);
    }
    wake_poll(e);
    engine_unlock(e);
    free(tracked);
    return call;
}

int64_t nf_engine_wait(struct nf_engine *e, struct nf_call *call, double until) {
    engine_lock(e);
    while (!is_finished(call) && !nf_core_totals(e->core).unusable_epoch) {
        if (e->is_driver_active) {
            wait_changed(e, until);
            if (monotonic() >= until) break;
        } else {
            run_io_loop(e, call, until);
            break;
        }
    }
    int64_t status = nf_core_outcome(call)->status;
    engine_unlock(e);
    return status;
}

struct nf_call *nf_engine_next_completed(struct nf_engine *e, double until) {
    struct nf_call *found = NULL;
    engine_lock(e);
    while (!found) {
        struct tracked **at = &e->first, *before = NULL;
        while (*at && !is_finished((*at)->call)) {
            before = *at;
            at = &(*at)->next;
        }
        if (*at) {
            struct tracked *finished = *at;
            found = finished->call;
            *at = finished->next;
            if (e->last == finished) e->last = before;
            free(finished);
        } else if (e->stopped || (nf_core_totals(e->core).unusable_epoch && e->first) || monotonic() >= until) {
            break;
        } else {
            wait_changed(e, until);
        }
    }
    engine_unlock(e);
    return found;
}

void nf_engine_release(struct nf_engine *e, struct nf_call *call, struct nf_outcome *outcome) {
    engine_lock(e);
    *outcome = *nf_core_outcome(call);
    nf_core_release(e->core, call);
    engine_unlock(e);
}

void nf_engine_abort(struct nf_engine *e) {
    engine_lock(e);
    nf_core_abort(e->core);
    notify_waiters(e);
    wake_poll(e);
    engine_unlock(e);
}

void nf_engine_fail_epoch_waiters(struct nf_engine *e) {
    engine_lock(e);
    nf_core_fail_epoch_waiters(e->core);
    notify_waiters(e);
    wake_poll(e);
    engine_unlock(e);
}

void nf_engine_totals(struct nf_engine *e, struct nf_totals *totals) {
    engine_lock(e);
    *totals = nf_core_totals(e->core);
    engine_unlock(e);
}

int64_t nf_engine_reports(struct nf_engine *e, struct nf_tree_report *reports, int64_t capacity) {
    engine_lock(e);
    int64_t count = nf_core_trees(e->core);
    for (int64_t i = 0; i < count && i < capacity; i++) reports[i] = nf_core_report(e->core, i);
    engine_unlock(e);
    return count;
}

int64_t nf_engine_call_log(struct nf_engine *e, struct nf_call_record *records, int64_t capacity) {
    engine_lock(e);
    int64_t count = nf_core_call_log(e->core, records, capacity);
    engine_unlock(e);
    return count;
}

int64_t nf_engine_error(struct nf_engine *e) {
    engine_lock(e);
    int64_t error = sockets_error(e->sockets);
    engine_unlock(e);
    return error;
}

int64_t nf_engine_socket_errors(struct nf_engine *e) {
    engine_lock(e);
    int64_t count = sockets_survived_errors(e->sockets);
    engine_unlock(e);
    return count;
}

void nf_engine_stop(struct nf_engine *e) {
    engine_lock(e);
    e->stopped = 1;
    nf_core_abort(e->core);
    notify_waiters(e);
    wake_poll(e);
    engine_unlock(e);
}

void nf_engine_destroy(struct nf_engine *e) {
    if (e->core) nf_engine_stop(e);
    if (e->has_thread) pthread_join(e->thread, NULL);
    while (e->first) {
        struct tracked *t = e->first;
        e->first = t->next;
        if (is_finished(t->call)) nf_core_release(e->core, t->call);
        free(t);
    }
    if (e->core) nf_core_destroy(e->core);
    if (e->sockets) sockets_destroy(e->sockets);
    if (e->wake_fd >= 0) close(e->wake_fd);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
