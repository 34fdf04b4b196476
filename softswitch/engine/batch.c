/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The way of frames through the engine, a batch at a time. */

#define _GNU_SOURCE
#include <sys/timerfd.h>
#include <time.h>

#include "inside.h"
#include "pcap.h"

enum {
    RECEIVE_BUDGET = 64,      /* frames per port and batch: bounds how long a frame waits for its batch to leave */
    TAP_CHECK_NS = 100000000, /* how late a port may notice that somebody watches it */
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void deliver(void *context, const uint8_t *data, uint32_t length) {
    struct engine_port *port = context;
    if (port->capture[ENGINE_IN]) pcap_write(port->capture[ENGINE_IN], data, length);
    ss_receive(port->engine->sw, port->port.number, data, length, port->engine->now_ns);
}

static void on_received(void *context, struct port *port, uint8_t *data, uint32_t length) {
    struct engine_port *from = (struct engine_port *)port;
    struct engine *engine = context;
    if (engine->times_frames) engine->now_ns = clock_ns(); /* programs measure the gaps; else a batch's time is enough */
    fault_pass(&from->line[ENGINE_IN], engine->now_ns, data, length, deliver, from);
}

static void emit(void *context, const uint8_t *data, uint32_t length) {
    struct engine_port *port = context;
    port_send(&port->port, data, length);
}

void on_transmit(void *context, uint32_t number, const uint8_t *data, uint32_t length) {
    struct engine *engine = context;
    if (number == engine->cpu_port) {
        mailbox_put(&engine->packet_in, data, length);
        return;
    }
    struct engine_port *to = number < PORT_NUMBERS ? engine->by_number[number] : NULL;
    if (!to) {
        engine->stats.unknown_port++;
        return;
    }
    if (to->capture[ENGINE_OUT]) pcap_write(to->capture[ENGINE_OUT], data, length);
    fault_pass(&to->line[ENGINE_OUT], engine->now_ns, data, length, emit, to);
}

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void arm(struct engine *engine, uint64_t deadline_ns) {
    if (deadline_ns == engine->armed_ns) return;
    struct itimerspec when = {0};
    if (deadline_ns != SS_NEVER) {
        uint64_t at = deadline_ns ? deadline_ns : 1; /* zero would disarm */
        when.it_value.tv_sec = (time_t)(at / 1000000000u);
        when.it_value.tv_nsec = (long)(at % 1000000000u);
    }
    timerfd_settime(engine->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    engine->armed_ns = deadline_ns;
}

/* Lets out what is due on the lines and in the core's queues, sends everything, and sets the timer for the rest. */
void finish_batch(struct engine *engine) {
    uint64_t deadline = SS_NEVER;
    if (!engine->times_frames) engine->now_ns = clock_ns();
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct engine_port *port = engine->ports[i];
        fault_release(&port->line[ENGINE_IN], engine->now_ns, deliver, port);
        deadline = earlier(deadline, fault_next_due(&port->line[ENGINE_IN]));
    }
    deadline = earlier(deadline, ss_service(engine->sw, engine->now_ns));
    ss_end(engine->sw);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct engine_port *port = engine->ports[i];
        fault_release(&port->line[ENGINE_OUT], engine->now_ns, emit, port);
        deadline = earlier(deadline, fault_next_due(&port->line[ENGINE_OUT]));
        port_flush(&port->port);
    }
    arm(engine, deadline);
}

void begin_batch(struct engine *engine) {
    ss_begin(engine->sw);
    engine->times_frames = ss_times_frames(engine->sw);
    engine->now_ns = clock_ns();
}

static void flush_captures(struct engine *engine) {
    for (uint32_t i = 0; engine->capture_directory && i < engine->port_count; i++)
        for (int d = 0; d < ENGINE_DIRECTIONS; d++)
            if (engine->ports[i]->capture[d]) fflush(engine->ports[i]->capture[d]);
}

static void look_for_taps(struct engine *engine) {
    engine->next_tap_check_ns = engine->now_ns + TAP_CHECK_NS;
    taps_read(&engine->taps);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct port *port = &engine->ports[i]->port;
        port_set_watched(port, taps_watch(&engine->taps, port->ifindex, port->inode));
        port_retry(port, engine->now_ns);
    }
}

bool run_batch(struct engine *engine) {
    uint32_t received = 0;
    enter(engine);
    begin_batch(engine);
    if (engine->now_ns >= engine->next_tap_check_ns) look_for_taps(engine);
    for (uint32_t i = 0; i < engine->port_count; i++)
        received += port_receive(&engine->ports[i]->port, RECEIVE_BUDGET, on_received, engine);
    finish_batch(engine);
    engine->stats.batches++;
    if (received == 0) {
        engine->stats.sleeps++;
        flush_captures(engine);
    }
    leave(engine);
    return received > 0;
}
