/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The engine's thread, its life, and what the control plane asks of the whole. */

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "inside.h"
#include "links.h"

enum {
    BUSY_BATCHES = 32,   /* batches before the other events are looked at although frames keep coming */
    DRAIN_BATCHES = 256, /* at the stop: enough for full rings, bounded when frames keep coming */
    EVENTS = 64,
};

static void read_counter(int fd) {
    uint64_t ignored;
    while (read(fd, &ignored, sizeof ignored) > 0) {
    }
}

static void handle(struct engine *engine, const struct epoll_event *event) {
    switch ((enum event_source)(event->data.u64 >> 32)) {
    case EVENT_WAKE: read_counter(engine->wake_fd); break;
    case EVENT_TIMER:
        read_counter(engine->timer_fd);
        enter(engine);
        engine->armed_ns = SS_NEVER;
        leave(engine);
        break;
    case EVENT_LINKS:
        links_drain(engine->links_fd);
        follow_interfaces(engine);
        break;
    case EVENT_PORT:
        if (event->events & EPOLLERR) clear_error(engine, (uint32_t)event->data.u64);
        break;
    }
}

static void wait_for_events(struct engine *engine, int timeout_ms) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(engine->epoll_fd, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) handle(engine, &events[i]);
}

static void *run(void *context) {
    struct engine *engine = context;
    uint32_t busy = 0;
    while (!atomic_load(&engine->stopping)) {
        bool more = run_batch(engine);
        if (more && ++busy < BUSY_BATCHES) continue;
        busy = 0;
        wait_for_events(engine, more ? 0 : -1);
    }
    for (uint32_t i = 0; i < DRAIN_BATCHES && run_batch(engine); i++) {
    }
    return NULL;
}

static int open_events(struct engine *engine) {
    int error = mailbox_init(&engine->packet_in);
    if (error) return error;
    engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    engine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    engine->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (engine->epoll_fd < 0 || engine->wake_fd < 0 || engine->timer_fd < 0) return -errno;
    if ((engine->links_fd = links_open()) < 0) return engine->links_fd;
    if ((error = watch(engine, engine->wake_fd, EVENT_WAKE, 0, 0))) return error;
    if ((error = watch(engine, engine->timer_fd, EVENT_TIMER, 0, 0))) return error;
    return watch(engine, engine->links_fd, EVENT_LINKS, 0, 0);
}

struct engine *engine_new(struct ss_switch *sw, uint32_t cpu_port) {
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine) return NULL;
    engine->sw = sw;
    engine->cpu_port = cpu_port;
    engine->epoll_fd = engine->wake_fd = engine->timer_fd = engine->links_fd = -1;
    engine->packet_in.event_fd = -1;
    engine->armed_ns = SS_NEVER;
    ss_lock_init(&engine->lock);
    engine->by_number = calloc(PORT_NUMBERS, sizeof *engine->by_number);
    engine->ports = calloc(PORT_NUMBERS, sizeof *engine->ports);
    int error = engine->by_number && engine->ports ? open_events(engine) : -ENOMEM;
    if (error) {
        engine_free(engine);
        errno = -error;
        return NULL;
    }
    ss_set_tx(sw, on_transmit, engine);
    return engine;
}

int engine_start(struct engine *engine) {
    sigset_t all, before;
    sigfillset(&all);
    /* Signals are the control plane's: the new thread takes none. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&engine->thread, NULL, run, engine);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return -error;
    pthread_setname_np(engine->thread, "data-plane");
    engine->running = true;
    return 0;
}

void engine_stop(struct engine *engine) {
    if (!engine->running) return;
    atomic_store(&engine->stopping, true);
    eventfd_write(engine->wake_fd, 1);
    pthread_join(engine->thread, NULL);
    engine->running = false;
}

void engine_free(struct engine *engine) {
    engine_stop(engine);
    if (engine->links_fd >= 0) ss_set_tx(engine->sw, NULL, NULL);
    for (uint32_t i = 0; i < engine->port_count; i++) free_port(engine->ports[i]);
    int fds[] = {engine->epoll_fd, engine->wake_fd, engine->timer_fd, engine->links_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    mailbox_free(&engine->packet_in);
    ss_lock_destroy(&engine->lock);
    free(engine->capture_directory);
    free(engine->by_number);
    free(engine->ports);
    free(engine);
}

void engine_stats_get(struct engine *engine, struct engine_stats *out) {
    clockid_t clock;
    struct timespec used = {0};
    enter(engine);
    *out = engine->stats;
    leave(engine);
    out->packet_in_lost = mailbox_lost(&engine->packet_in);
    if (engine->running && pthread_getcpuclockid(engine->thread, &clock) == 0) clock_gettime(clock, &used);
    out->cpu_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

void engine_service(struct engine *engine) {
    enter(engine);
    begin_batch(engine);
    finish_batch(engine);
    leave(engine);
}

int engine_packet_out(struct engine *engine, const uint8_t *data, uint32_t length) {
    if (length > SS_MAX_FRAME) return -EMSGSIZE;
    enter(engine);
    begin_batch(engine);
    ss_receive(engine->sw, engine->cpu_port, data, length, engine->now_ns);
    finish_batch(engine);
    leave(engine);
    return 0;
}

int engine_packet_in_fd(const struct engine *engine) { return engine->packet_in.event_fd; }

int64_t engine_packet_in(struct engine *engine, uint8_t *data, uint32_t room) {
    return mailbox_take(&engine->packet_in, data, room);
}
