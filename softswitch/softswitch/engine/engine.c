/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The engine's thread: creation, event loop, shutdown, and the requests that concern the whole engine. */

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

#include "engine_internal.h"
#include "netlink_monitor.h"

enum {
    BUSY_BATCHES = 32,   /* consecutive batches before other events are polled */
    DRAIN_BATCHES = 256, /* batches at shutdown: enough for full rings */
    EVENTS = 64,
};

static void read_counter(int fd) {
    uint64_t ignored;
    while (read(fd, &ignored, sizeof ignored) > 0) {
    }
}

static void handle(struct ss_engine *engine, const struct epoll_event *event) {
    switch ((enum ss_event_source)(event->data.u64 >> 32)) {
    case SS_EVENT_WAKE:
        read_counter(engine->wake_fd);
        break;
    case SS_EVENT_TIMER:
        read_counter(engine->timer_fd);
        ss_engine_lock(engine);
        engine->armed_ns = SS_NEVER;
        bool is_reopening = engine->now_ns >= engine->reopen_ns, is_looking = engine->now_ns >= engine->look_ns;
        ss_engine_unlock(engine);
        if (is_reopening) ss_ports_update(engine);
        if (is_looking) ss_ports_look(engine);
        break;
    case SS_EVENT_NETLINK:
        ss_netlink_drain(engine->netlink_fd);
        ss_ports_update(engine);
        break;
    case SS_EVENT_INBOX: /* level-triggered: the batch empties it */
        break;
    case SS_EVENT_PORT:
        if (event->events & EPOLLERR) ss_ports_clear_error(engine, (uint32_t)event->data.u64);
        break;
    }
}

static void wait_for_events(struct ss_engine *engine, int timeout_ms) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(engine->epoll_fd, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) handle(engine, &events[i]);
}

static void *run(void *context) {
    struct ss_engine *engine = context;
    uint32_t busy = 0;
    while (!atomic_load(&engine->stopping)) {
        bool more = ss_batch_run(engine);
        if (more && ++busy < BUSY_BATCHES) continue;
        busy = 0;
        wait_for_events(engine, more ? 0 : -1);
    }
    for (uint32_t i = 0; i < DRAIN_BATCHES && ss_batch_run(engine); i++) {
    }
    return NULL;
}

static int open_events(struct ss_engine *engine) {
    int error = ss_mailbox_init(&engine->packet_in);
    if (error) return error;
    engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    engine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    engine->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    engine->port_change_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (engine->epoll_fd < 0 || engine->wake_fd < 0 || engine->timer_fd < 0 || engine->port_change_fd < 0) return -errno;
    if ((engine->netlink_fd = ss_netlink_open()) < 0) return engine->netlink_fd;
    if ((error = ss_engine_watch_fd(engine, engine->wake_fd, SS_EVENT_WAKE, 0, 0))) return error;
    if ((error = ss_engine_watch_fd(engine, engine->timer_fd, SS_EVENT_TIMER, 0, 0))) return error;
    return ss_engine_watch_fd(engine, engine->netlink_fd, SS_EVENT_NETLINK, 0, 0);
}

struct ss_engine *ss_engine_new(struct ss_switch *sw, uint32_t cpu_port) {
    struct ss_engine *engine = calloc(1, sizeof *engine);
    if (!engine) return NULL;
    engine->sw = sw;
    engine->threads = 1;
    engine->threads_of[0] = engine;
    engine->inbox.event_fd = -1;
    engine->cpu_port = cpu_port;
    engine->epoll_fd = engine->wake_fd = engine->timer_fd = engine->netlink_fd = engine->port_change_fd = -1;
    engine->packet_in.event_fd = -1;
    engine->armed_ns = engine->reopen_ns = engine->look_ns = SS_NEVER;
    ss_lock_init(&engine->lock);
    engine->by_number = calloc(SS_PORT_NUMBERS, sizeof *engine->by_number);
    engine->ports = calloc(SS_PORT_NUMBERS, sizeof *engine->ports);
    int error = engine->by_number && engine->ports ? open_events(engine) : -ENOMEM;
    if (error) {
        ss_engine_free(engine);
        errno = -error;
        return NULL;
    }
    ss_set_tx(sw, ss_batch_on_transmit, engine);
    ss_set_buffer(sw, ss_batch_buffer);
    return engine;
}

static int open_inbox(struct ss_engine *engine) {
    int error = ss_mailbox_init(&engine->inbox);
    if (error) return error;
    if (!(engine->inbox_frame = malloc(SS_MAX_FRAME))) return -ENOMEM;
    return ss_engine_watch_fd(engine, engine->inbox.event_fd, SS_EVENT_INBOX, 0, 0);
}

int ss_engine_join(struct ss_engine *const *engines, uint32_t count) {
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        struct ss_engine *engine = engines[i];
        int error = open_inbox(engine);
        if (error) return error;
        engine->thread_index = i;
        engine->threads = count;
        memcpy(engine->threads_of, engines, count * sizeof *engines);
        ss_set_handover(engine->sw, ss_batch_on_handover, engine);
        /* The first thread binds all ports, in order. */
        if (i && epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, engine->netlink_fd, NULL) < 0) return -errno;
    }
    return 0;
}

int ss_engine_start(struct ss_engine *engine) {
    sigset_t all, before;
    sigfillset(&all);
    /* The control plane handles signals. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&engine->thread, NULL, run, engine);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return -error;
    char name[16];
    snprintf(name, sizeof name, engine->thread_index ? "data-plane-%u" : "data-plane", engine->thread_index);
    pthread_setname_np(engine->thread, name);
    engine->running = true;
    return 0;
}

void ss_engine_stop(struct ss_engine *engine) {
    if (!engine->running) return;
    atomic_store(&engine->stopping, true);
    eventfd_write(engine->wake_fd, 1);
    pthread_join(engine->thread, NULL);
    engine->running = false;
}

void ss_engine_free(struct ss_engine *engine) {
    ss_engine_stop(engine);
    if (engine->netlink_fd >= 0) ss_set_tx(engine->sw, NULL, NULL);
    if (engine->threads > 1) ss_set_handover(engine->sw, NULL, NULL);
    for (uint32_t i = 0; i < engine->port_count; i++) ss_engine_port_free(engine->ports[i]);
    int fds[] = {engine->epoll_fd, engine->wake_fd, engine->timer_fd, engine->netlink_fd, engine->port_change_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    ss_mailbox_free(&engine->packet_in);
    if (engine->inbox_frame) ss_mailbox_free(&engine->inbox);
    free(engine->inbox_frame);
    ss_lock_destroy(&engine->lock);
    free(engine->capture_directory);
    free(engine->by_number);
    free(engine->ports);
    free(engine);
}

void ss_engine_stats_get(struct ss_engine *engine, struct ss_engine_stats *out) {
    clockid_t clock;
    struct timespec used = {0};
    ss_engine_lock(engine);
    *out = engine->stats;
    ss_engine_unlock(engine);
    out->packet_in_lost = ss_mailbox_lost(&engine->packet_in);
    if (engine->running && pthread_getcpuclockid(engine->thread, &clock) == 0) clock_gettime(clock, &used);
    out->cpu_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

void ss_engine_service(struct ss_engine *engine) {
    ss_engine_lock(engine);
    ss_batch_begin(engine);
    ss_batch_finish(engine);
    ss_engine_unlock(engine);
}

int ss_engine_packet_out(struct ss_engine *engine, const uint8_t *data, uint32_t length) {
    if (length > SS_MAX_FRAME) return -EMSGSIZE;
    ss_engine_lock(engine);
    ss_batch_begin(engine);
    ss_receive(engine->sw, engine->cpu_port, data, length, engine->now_ns);
    ss_batch_finish(engine);
    ss_engine_unlock(engine);
    return 0;
}

int ss_engine_port_change_fd(const struct ss_engine *engine) { return engine->port_change_fd; }

int ss_engine_packet_in_fd(const struct ss_engine *engine) { return engine->packet_in.event_fd; }

int64_t ss_engine_packet_in(struct ss_engine *engine, uint8_t *data, uint32_t capacity) {
    return ss_mailbox_take(&engine->packet_in, NULL, data, capacity);
}
