/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Moves frames from the interfaces through the core and back, one batch at a time. */

#define _GNU_SOURCE
#include <sys/timerfd.h>
#include <time.h>

#include "engine_internal.h"
#include "pcap.h"

enum {
    RECEIVE_BUDGET = 64,      /* frames per port and batch: bounds the time until a batch is sent */
    TAP_CHECK_NS = 100000000, /* interval between reads of the kernel's list of taps */
};

uint64_t ss_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void deliver(void *context, const uint8_t *data, uint32_t length) {
    struct ss_engine_port *port = context;
    if (port->capture[SS_ENGINE_IN]) ss_pcap_write(port->capture[SS_ENGINE_IN], data, length);
    ss_receive(port->engine->sw, port->interface.number, data, length, port->engine->now_ns);
}

static void on_received(void *context, struct ss_interface *port, uint8_t *data, uint32_t length) {
    struct ss_engine_port *from = (struct ss_engine_port *)port;
    struct ss_engine *engine = context;
    if (engine->times_frames) engine->now_ns = ss_clock_ns(); /* otherwise one timestamp per batch */
    ss_fault_pass(&from->injector[SS_ENGINE_IN], engine->now_ns, data, length, deliver, from);
}

static void emit(void *context, const uint8_t *data, uint32_t length) {
    struct ss_engine_port *port = context;
    ss_interface_send(&port->interface, data, length, port->engine->now_ns);
}

/* Faults may send other frames before this one, or this one twice: it is then not written where the next frame sent lies. */
uint8_t *ss_batch_buffer(void *context, uint32_t number, uint32_t length) {
    const struct ss_engine *engine = context;
    struct ss_engine_port *to = number < SS_PORT_NUMBERS ? engine->by_number[number] : NULL;
    bool is_next = to && number != engine->cpu_port && !to->injector[SS_ENGINE_OUT].active;
    return is_next ? ss_interface_place(&to->interface, length) : NULL;
}

void ss_batch_on_transmit(void *context, uint32_t number, const uint8_t *data, uint32_t length) {
    struct ss_engine *engine = context;
    if (number == engine->cpu_port) {
        ss_mailbox_put(&engine->threads_of[0]->packet_in, number, data, length);
        return;
    }
    struct ss_engine_port *to = number < SS_PORT_NUMBERS ? engine->by_number[number] : NULL;
    if (!to) {
        engine->stats.unknown_port++;
        return;
    }
    if (to->capture[SS_ENGINE_OUT]) ss_pcap_write(to->capture[SS_ENGINE_OUT], data, length);
    ss_fault_pass(&to->injector[SS_ENGINE_OUT], engine->now_ns, data, length, emit, to);
}

void ss_batch_on_handover(void *context, uint32_t shard, uint32_t number, const uint8_t *data, uint32_t length) {
    const struct ss_engine *engine = context;
    ss_mailbox_put(&engine->threads_of[shard]->inbox, number, data, length);
}

/* Takes the frames that were another thread's guess; their faults and captures are done. */
static uint32_t receive_handed_over(struct ss_engine *engine) {
    uint32_t count = 0;
    for (; engine->threads > 1 && count < RECEIVE_BUDGET; count++) {
        uint32_t number;
        int64_t length = ss_mailbox_take(&engine->inbox, &number, engine->inbox_frame, SS_MAX_FRAME);
        if (length < 0) break;
        if (engine->times_frames) engine->now_ns = ss_clock_ns();
        ss_receive(engine->sw, number, engine->inbox_frame, (uint32_t)length, engine->now_ns);
    }
    return count;
}

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void arm(struct ss_engine *engine, uint64_t deadline_ns) {
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

/* Releases due frames of the fault injectors and of the core's queues, sends all, and arms the timer for the next deadline. */
void ss_batch_finish(struct ss_engine *engine) {
    uint64_t deadline = SS_NEVER;
    if (!engine->times_frames) engine->now_ns = ss_clock_ns();
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct ss_engine_port *port = engine->ports[i];
        ss_fault_release(&port->injector[SS_ENGINE_IN], engine->now_ns, deliver, port);
        deadline = earlier(deadline, ss_fault_next_due(&port->injector[SS_ENGINE_IN]));
    }
    deadline = earlier(deadline, ss_service(engine->sw, engine->now_ns));
    ss_end(engine->sw);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct ss_engine_port *port = engine->ports[i];
        ss_fault_release(&port->injector[SS_ENGINE_OUT], engine->now_ns, emit, port);
        deadline = earlier(deadline, ss_fault_next_due(&port->injector[SS_ENGINE_OUT]));
        ss_interface_flush(&port->interface, engine->now_ns);
    }
    arm(engine, earlier(deadline, earlier(engine->reopen_ns, engine->look_ns)));
}

void ss_batch_begin(struct ss_engine *engine) {
    ss_begin(engine->sw);
    engine->times_frames = ss_times_frames(engine->sw);
    engine->now_ns = ss_clock_ns();
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct ss_interface *port = &engine->ports[i]->interface;
        struct ss_backlog backlog = ss_interface_backlog(port, engine->now_ns);
        ss_port_set_backlog(engine->sw, port->number, backlog.packets, (uint32_t)(backlog.wait_ns / 1000));
    }
}

static void flush_captures(struct ss_engine *engine) {
    for (uint32_t i = 0; engine->capture_directory && i < engine->port_count; i++)
        for (int d = 0; d < SS_ENGINE_DIRECTIONS; d++)
            if (engine->ports[i]->capture[d]) fflush(engine->ports[i]->capture[d]);
}

static void check_taps(struct ss_engine *engine) {
    engine->next_tap_check_ns = engine->now_ns + TAP_CHECK_NS;
    ss_taps_read(&engine->taps);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct ss_interface *port = &engine->ports[i]->interface;
        port->has_tap = ss_taps_has_listener(&engine->taps, port->ifindex, port->inode, engine->threads - 1);
        ss_interface_update(port, engine->now_ns, false);
    }
}

bool ss_batch_run(struct ss_engine *engine) {
    uint32_t received;
    ss_engine_lock(engine);
    ss_batch_begin(engine);
    if (engine->now_ns >= engine->next_tap_check_ns) check_taps(engine);
    received = receive_handed_over(engine);
    for (uint32_t i = 0; i < engine->port_count; i++)
        received += ss_interface_receive(&engine->ports[i]->interface, RECEIVE_BUDGET, on_received, engine);
    ss_batch_finish(engine);
    engine->stats.batches++;
    if (received == 0) {
        engine->stats.sleeps++;
        flush_captures(engine);
    }
    ss_engine_unlock(engine);
    return received > 0;
}
