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

/* A call in the background. */
struct tracked {
    struct tracked *next;
    struct nf_call *call;
};

struct nf_engine {
    struct nf_core *core;
    struct sockets *sockets;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a call is over, or the one who moves packets stopped or is to go on */
    pthread_t thread;
    int has_thread, stopped;
    int driving; /* somebody moves packets; */
    int polling; /* and waits for some, without the lock */
    int paused;  /* how many want nobody to */
    int waiters; /* who wait for `changed` */
    int wanting; /* who want the lock (atomic) */
    int wake;    /* eventfd */
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

static void enter(struct nf_engine *e) {
    __atomic_add_fetch(&e->wanting, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&e->lock);
    __atomic_sub_fetch(&e->wanting, 1, __ATOMIC_RELAXED);
}

static void leave(struct nf_engine *e) { pthread_mutex_unlock(&e->lock); }

static void tell(struct nf_engine *e) {
    if (e->waiters) pthread_cond_broadcast(&e->changed);
}

/* Until `changed` or CLOCK_MONOTONIC is `until`. */
static void await(struct nf_engine *e, double until) {
    e->waiters++;
    if (until >= NF_UNKNOWN) {
        pthread_cond_wait(&e->changed, &e->lock);
    } else {
        struct timespec t = timespec_of(until);
        pthread_cond_timedwait(&e->changed, &e->lock, &t);
    }
    e->waiters--;
}

static void wake(struct nf_engine *e) {
    uint64_t one = 1;
    if (e->polling && write(e->wake, &one, sizeof one) < 0) return; /* full: it is awake */
}

static int is_over(const struct nf_call *call) { return nf_core_outcome(call)->status != NF_PENDING; }

/* Whether there is something to do that nobody waits for. */
static int background_pending(const struct nf_engine *e) {
    if (nf_core_totals(e->core).owing) return 1;
    for (const struct tracked *t = e->first; t; t = t->next)
        if (!is_over(t->call)) return 1;
    return 0;
}

static int wait_for(struct pollfd *polled, int count, double seconds) {
    struct timespec t = timespec_of(seconds);
    return ppoll(polled, (nfds_t)count, &t, NULL);
}

/* Waits for packets without the lock, up to `until`; with `gather` for no packets, but for so many seconds at most. Gives
 * whether a signal came. */
static int poll_sockets(struct nf_engine *e, double gather, double until) {
    struct pollfd polled[NF_TREES_MAX + 1] = {{e->wake, POLLIN, 0}};
    int count = 1 + sockets_poll(e->sockets, polled + 1);
    e->polling = 1;
    leave(e);
    double left = until - monotonic();
    int found = gather > 0 ? wait_for(polled, 1, gather < left ? gather : left) : wait_for(polled, count, left);
    int interrupted = found < 0 && errno == EINTR;
    uint64_t told;
    if (found > 0 && polled[0].revents && read(e->wake, &told, sizeof told) < 0) interrupted = 0;
    enter(e);
    e->polling = 0;
    if (e->paused) tell(e);
    return interrupted;
}

/* Moves packets until `call` is over (NULL: nothing in the background is left), `until`, a signal, or another epoch is
 * needed. */
static void drive(struct nf_engine *e, const struct nf_call *call, double until) {
    int64_t pending = nf_core_totals(e->core).pending;
    int gathered = 0; /* since packets came */
    e->driving = 1;
    if (!e->paused) nf_core_turn(e->core, monotonic()); /* what has come in the meantime may be a new call's */
    for (;;) {
        if (e->paused) {
            await(e, NF_UNKNOWN);
            if (e->stopped) break;
            continue;
        }
        int64_t got = sockets_receive(e->sockets, e->core, monotonic());
        double now = monotonic();
        nf_core_turn(e->core, now);
        sockets_send(e->sockets, e->core, now);
        if (sockets_error(e->sockets)) nf_core_abort(e->core);
        struct nf_totals totals = nf_core_totals(e->core);
        if (totals.pending != pending) tell(e);
        pending = totals.pending;
        if (e->stopped || totals.worn || now >= until) break;
        if (call ? is_over(call) : !background_pending(e)) break;
        if (got && __atomic_load_n(&e->wanting, __ATOMIC_RELAXED)) {
            leave(e);
            sched_yield();
            enter(e);
        } else if (!sockets_more(e->sockets)) {
            int blocked = sockets_blocked(e->sockets);
            double next = blocked ? NF_UNKNOWN : nf_core_next(e->core, now);
            double gather = blocked || (gathered && !got) ? 0 : nf_core_gather(e->core);
            gathered = gather > 0;
            if (poll_sockets(e, gather, next < until ? next : until)) break;
        }
    }
    e->driving = 0;
    tell(e);
}

static void *work_in_background(void *engine) {
    struct nf_engine *e = engine;
    enter(e);
    while (!e->stopped) {
        if (e->driving || !background_pending(e) || nf_core_totals(e->core).worn)
            await(e, NF_UNKNOWN);
        else
            drive(e, NULL, NF_UNKNOWN);
    }
    leave(e);
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
    e->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    e->core = nf_core_create();
    e->sockets = sockets_create();
    if (e->wake >= 0 && e->core && e->sockets) return e;
    nf_engine_destroy(e);
    return NULL;
}

/* Nobody waits in ppoll until `resume`. */
static void pause_driver(struct nf_engine *e) {
    e->paused++;
    while (e->polling) {
        wake(e);
        await(e, NF_UNKNOWN);
    }
}

static void resume_driver(struct nf_engine *e) {
    e->paused--;
    tell(e);
}

void nf_engine_retire(struct nf_engine *e) {
    enter(e);
    pause_driver(e);
    sockets_close(e->sockets);
    resume_driver(e);
    leave(e);
}

static void start_thread(struct nf_engine *e) {
    if (!e->has_thread) e->has_thread = !pthread_create(&e->thread, NULL, work_in_background, e);
}

int nf_engine_assign(struct nf_engine *e, const struct nf_assignment *assignment, const int32_t *fds, int64_t count) {
    enter(e);
    pause_driver(e);
    sockets_close(e->sockets);
    int error = sockets_open(e->sockets, fds, count, assignment->lanes);
    if (!error && nf_core_assign(e->core, assignment, monotonic())) error = ENOMEM;
    if (nf_core_totals(e->core).owing) start_thread(e);
    resume_driver(e);
    tell(e);
    leave(e);
    return error;
}

struct nf_call *nf_engine_submit(struct nf_engine *e, const struct nf_request *request, int64_t background) {
    struct tracked *tracked = background ? malloc(sizeof *tracked) : NULL;
    if (background && !tracked) return NULL;
    enter(e);
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
        tell(e);
    }
    wake(e);
    leave(e);
    free(tracked);
    return call;
}

int64_t nf_engine_wait(struct nf_engine *e, struct nf_call *call, double until) {
    enter(e);
    while (!is_over(call) && !nf_core_totals(e->core).worn) {
        if (e->driving) {
            await(e, until);
            if (monotonic() >= until) break;
        } else {
            drive(e, call, until);
            break;
        }
    }
    int64_t status = nf_core_outcome(call)->status;
    leave(e);
    return status;
}

struct nf_call *nf_engine_next(struct nf_engine *e, double until) {
    struct nf_call *found = NULL;
    enter(e);
    while (!found) {
        struct tracked **at = &e->first, *before = NULL;
        while (*at && !is_over((*at)->call)) {
            before = *at;
            at = &(*at)->next;
        }
        if (*at) {
            struct tracked *over = *at;
            found = over->call;
            *at = over->next;
            if (e->last == over) e->last = before;
            free(over);
        } else if (e->stopped || (nf_core_totals(e->core).worn && e->first) || monotonic() >= until) {
            break;
        } else {
            await(e, until);
        }
    }
    leave(e);
    return found;
}

void nf_engine_release(struct nf_engine *e, struct nf_call *call, struct nf_outcome *outcome) {
    enter(e);
    *outcome = *nf_core_outcome(call);
    nf_core_release(e->core, call);
    leave(e);
}

void nf_engine_abort(struct nf_engine *e) {
    enter(e);
    nf_core_abort(e->core);
    tell(e);
    wake(e);
    leave(e);
}

void nf_engine_no_epoch(struct nf_engine *e) {
    enter(e);
    nf_core_no_epoch(e->core);
    tell(e);
    wake(e);
    leave(e);
}

void nf_engine_totals(struct nf_engine *e, struct nf_totals *totals) {
    enter(e);
    *totals = nf_core_totals(e->core);
    leave(e);
}

int64_t nf_engine_reports(struct nf_engine *e, struct nf_tree_report *reports, int64_t room) {
    enter(e);
    int64_t count = nf_core_trees(e->core);
    for (int64_t i = 0; i < count && i < room; i++) reports[i] = nf_core_report(e->core, i);
    leave(e);
    return count;
}

int64_t nf_engine_error(struct nf_engine *e) {
    enter(e);
    int64_t error = sockets_error(e->sockets);
    leave(e);
    return error;
}

void nf_engine_stop(struct nf_engine *e) {
    enter(e);
    e->stopped = 1;
    nf_core_abort(e->core);
    tell(e);
    wake(e);
    leave(e);
}

void nf_engine_destroy(struct nf_engine *e) {
    if (e->core) nf_engine_stop(e);
    if (e->has_thread) pthread_join(e->thread, NULL);
    while (e->first) {
        struct tracked *t = e->first;
        e->first = t->next;
        if (is_over(t->call)) nf_core_release(e->core, t->call);
        free(t);
    }
    if (e->core) nf_core_destroy(e->core);
    if (e->sockets) sockets_destroy(e->sockets);
    if (e->wake >= 0) close(e->wake);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
