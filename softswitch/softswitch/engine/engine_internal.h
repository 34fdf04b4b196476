/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* State and functions shared by the engine's files. */

#ifndef SS_ENGINE_INTERNAL_H
#define SS_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "engine.h"
#include "fanout.h"
#include "lock.h"
#include "mailbox.h"
#include "taps.h"

enum { SS_PORT_NUMBERS = SS_MAX_PORT + 1 };

enum ss_event_source { SS_EVENT_WAKE, SS_EVENT_TIMER, SS_EVENT_NETLINK, SS_EVENT_PORT, SS_EVENT_INBOX };

struct ss_engine_port {
    struct ss_interface interface; /* first member: an ss_interface_sink casts it to ss_engine_port */
    struct ss_engine *engine;
    bool oper_up; /* last value passed to the core */
    int error, reported_error; /* why it is not open: an errno */
    struct ss_fault_injector injector[SS_ENGINE_DIRECTIONS];
    FILE *capture[SS_ENGINE_DIRECTIONS];
};

struct ss_engine {
    struct ss_switch *sw;
    uint32_t thread_index, threads;
    struct ss_engine *threads_of[SS_MAX_THREADS]; /* of the same switch, by index; itself at its own */
    struct ss_mailbox inbox; /* frames from these that belong to this one's shard */
    uint8_t *inbox_frame;
    uint32_t cpu_port;
    pthread_t thread;
    bool running;
    atomic_bool stopping;
    int epoll_fd, wake_fd, timer_fd, netlink_fd, port_change_fd;
    uint64_t armed_ns;

    struct ss_lock lock; /* guards all members below */
    struct ss_engine_port **ports; /* ascending by number */
    uint32_t port_count;
    struct ss_engine_port **by_number;
    char *capture_directory;
    uint64_t now_ns, next_tap_check_ns;
    uint64_t reopen_ns, reopen_wait_ns; /* of ports that failed to open, of all threads; the first one's */
    uint64_t look_ns; /* of the first thread: the next look at devices that the kernel reports no change of */
    bool merges_runs; /* sends runs of frames as one: ss_engine_set_gso */
    uint32_t run_ring_bytes, run_rings_bytes; /* of a port that receives such frames in its ring; of all, at most */
    bool times_frames; /* timestamp each frame of the batch, not the batch */
    struct ss_steering steering; /* of the first thread: of all ports */
    struct ss_taps taps;
    struct ss_engine_stats stats;
    struct ss_mailbox packet_in;
};

/* engine_internal.c */
void ss_engine_lock(struct ss_engine *engine);
void ss_engine_unlock(struct ss_engine *engine);

/* Adds `fd` to the thread's epoll set. Returns 0 or a negative errno. */
int ss_engine_watch_fd(struct ss_engine *engine, int fd, enum ss_event_source source, uint32_t number, uint32_t flags);

/* batch.c. */
uint64_t ss_clock_ns(void);
/* Call ss_receive only between begin and finish, with the lock held. */
void ss_batch_begin(struct ss_engine *engine);
void ss_batch_finish(struct ss_engine *engine);
/* Runs one batch; takes the lock. Returns true if frames were received: there may be more. */
bool ss_batch_run(struct ss_engine *engine);
/* The ss_handover_fn of the core. */
void ss_batch_on_handover(void *context, uint32_t shard, uint32_t number, const uint8_t *data, uint32_t length);
/* The ss_buffer_fn and the ss_tx_fn of the core. */
uint8_t *ss_batch_buffer(void *context, uint32_t number, uint32_t length);
void ss_batch_on_transmit(void *context, uint32_t number, const uint8_t *data, uint32_t length);

/* ports.c */
/* The first thread calls this for all of them: they all close the ports that it finds gone or changed, before they open again
 * in their order. */
void ss_ports_update(struct ss_engine *first);
/* The same for devices that the kernel reports no change of. */
void ss_ports_look(struct ss_engine *first);
void ss_ports_clear_error(struct ss_engine *engine, uint32_t number);
void ss_engine_port_free(struct ss_engine_port *port);

#endif
