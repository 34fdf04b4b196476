/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the engine's files share. Names without `engine_` in front are for the engine alone. */

#ifndef NETFOLD_INSIDE_H
#define NETFOLD_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "engine.h"
#include "lock.h"
#include "mailbox.h"
#include "taps.h"

enum { PORT_NUMBERS = SS_MAX_PORT + 1 };

enum event_source { EVENT_WAKE, EVENT_TIMER, EVENT_LINKS, EVENT_PORT };

struct engine_port {
    struct port port; /* first: a port_sink gets it back by a cast */
    struct engine *engine;
    bool live; /* what the core was last told */
    struct fault_line line[ENGINE_DIRECTIONS];
    FILE *capture[ENGINE_DIRECTIONS];
};

struct engine {
    struct ss_switch *sw;
    uint32_t cpu_port;
    pthread_t thread;
    bool running;
    atomic_bool stopping;
    int epoll_fd, wake_fd, timer_fd, links_fd;
    uint64_t armed_ns;

    struct ss_lock lock; /* guards all below */
    struct engine_port **ports; /* ascending by number */
    uint32_t port_count;
    struct engine_port **by_number;
    char *capture_directory;
    uint64_t now_ns, next_tap_check_ns;
    bool times_frames; /* in this batch each frame gets a time of its own */
    struct taps taps;
    struct engine_stats stats;
    struct mailbox packet_in;
};

/* inside.c. Take the lock, and let it go. */
void enter(struct engine *engine);
void leave(struct engine *engine);

/* Has the thread woken by `fd`. 0, or a negative errno. */
int watch(struct engine *engine, int fd, enum event_source source, uint32_t number, uint32_t flags);

/* batch.c. Between the two calls of a bracket frames may be given to the core; all inside the lock. */
void begin_batch(struct engine *engine);
void finish_batch(struct engine *engine);
/* One whole batch, with its own lock. Returns whether frames were received: then there may be more. */
bool run_batch(struct engine *engine);
/* The core's `tx`. */
void on_transmit(void *context, uint32_t number, const uint8_t *data, uint32_t length);

/* ports.c */
void follow_interfaces(struct engine *engine);
void clear_error(struct engine *engine, uint32_t number);
void free_port(struct engine_port *port);

#endif
