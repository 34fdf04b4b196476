/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The ports of an engine: adding, removing, binding to interfaces that appear and vanish, faults, captures, counters. */

#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "engine_internal.h"
#include "pcap.h"

#define REOPEN_FIRST_NS 10000000ull
#define REOPEN_LAST_NS 64000000000ull
#define LOOK_NS 100000000ull /* between looks at devices that the kernel reports no change of */

/* The program is the group's, whose first socket is the first thread's. Call it with the lock held. */
static int steer(const struct ss_engine *engine, struct ss_engine_port *port) {
    struct ss_interface *interface = &port->interface;
    bool is_first = engine->threads > 1 && engine->thread_index == 0;
    if (!is_first || !ss_interface_is_open(interface) || !interface->kind->steer) return 0;
    return interface->kind->steer(interface, &engine->steering);
}

/* The kernel's group numbers the sockets of a port as they join: none opens before that of the thread before it. */
static bool is_next(const struct ss_engine *engine, const struct ss_engine_port *port) {
    if (!engine->thread_index) return true;
    struct ss_engine *before = engine->threads_of[engine->thread_index - 1];
    ss_engine_lock(before);
    const struct ss_engine_port *its = before->by_number[port->interface.number];
    bool is_open = its && ss_interface_is_open(&its->interface);
    ss_engine_unlock(before);
    return is_open;
}

static int open_interface(struct ss_engine *engine, struct ss_interface *interface) {
    int error = ss_interface_open(interface);
    if (error) return error;
    /* Edge-triggered: the rings are emptied before each wait. */
    if (interface->wait_fd >= 0)
        error = ss_engine_watch_fd(engine, interface->wait_fd, SS_EVENT_PORT, interface->number, EPOLLET);
    if (error) ss_interface_close(interface);
    return error;
}

static int open_port(struct ss_engine *engine, struct ss_engine_port *port) {
    int error = is_next(engine, port) ? open_interface(engine, &port->interface) : -ENODEV;
    port->error = -error;
    return error;
}

int ss_engine_set_steering(struct ss_engine *engine, const struct sock_filter *program, uint32_t length) {
    int error = length > SS_STEERING_STEPS ? -EINVAL : 0;
    if (error) return error;
    ss_engine_lock(engine);
    engine->steering.length = length;
    if (length) memcpy(engine->steering.step, program, length * sizeof *program);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        int refused = steer(engine, engine->ports[i]);
        if (refused) error = refused;
    }
    ss_engine_unlock(engine);
    return error;
}

static void update_core(struct ss_engine_port *port, bool oper_up) {
    if (oper_up == port->oper_up) return;
    port->oper_up = oper_up;
    if (port->engine->thread_index) return; /* the first thread's sockets tell */
    (void)ss_port_set_up(port->engine->sw, port->interface.number, oper_up);
}

/* Returns the number of a port to close, the first at or after `*at` in the order of ports; SS_PORT_NUMBERS: there is none. */
static uint32_t next_stale(struct ss_engine *engine, uint32_t *at) {
    uint32_t found = SS_PORT_NUMBERS;
    ss_engine_lock(engine);
    for (; found == SS_PORT_NUMBERS && *at < engine->port_count; ++*at)
        if (ss_interface_is_stale(&engine->ports[*at]->interface)) found = engine->ports[*at]->interface.number;
    ss_engine_unlock(engine);
    return found;
}

static void close_port(struct ss_engine *engine, uint32_t number) {
    ss_engine_lock(engine);
    struct ss_engine_port *port = engine->by_number[number];
    if (port) {
        ss_interface_close(&port->interface);
        update_core(port, false);
    }
    ss_engine_unlock(engine);
}

/* Opens the ports whose interfaces have appeared. */
static void open_ports(struct ss_engine *engine) {
    ss_engine_lock(engine);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct ss_interface *port = &engine->ports[i]->interface;
        if (!ss_interface_is_open(port) && open_port(engine, engine->ports[i]) == 0) (void)steer(engine, engine->ports[i]);
        ss_interface_update(port, engine->now_ns, true);
    }
    ss_engine_unlock(engine);
}

static void update_cores(struct ss_engine *engine) {
    ss_engine_lock(engine);
    for (uint32_t i = 0; i < engine->port_count; i++)
        update_core(engine->ports[i], ss_interface_is_oper_up(&engine->ports[i]->interface));
    ss_engine_unlock(engine);
}

/* The kernel frees a queue some time after its socket was closed here: only the next failure means another program. */
static bool is_news(const struct ss_engine_port *port, const struct ss_engine *first) {
    return port->error != port->reported_error && (port->error != EBUSY || first->reopen_wait_ns);
}

/* Returns whether a port failed to open though its interface is there. Notifies the control plane of what changed. */
static bool report_errors(struct ss_engine *engine, struct ss_engine *first) {
    bool has_failed = false, has_changed = false;
    ss_engine_lock(engine);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct ss_engine_port *port = engine->ports[i];
        has_failed |= port->error && (port->error != ENODEV || port->interface.kind->link);
        if (!is_news(port, first)) continue;
        has_changed = true;
        port->reported_error = port->error;
    }
    ss_engine_unlock(engine);
    if (has_changed) eventfd_write(first->port_change_fd, 1);
    return has_failed;
}

/* An interface that is absent is reported when it appears; another failure may end by itself. */
static void schedule_reopening(struct ss_engine *first, bool has_failed) {
    ss_engine_lock(first);
    uint64_t now_ns = ss_clock_ns();
    if (!has_failed) {
        first->reopen_wait_ns = 0;
        first->reopen_ns = SS_NEVER;
    } else if (!first->reopen_wait_ns || now_ns >= first->reopen_ns) { /* else the kernel reported a change meanwhile */
        first->reopen_wait_ns = first->reopen_wait_ns ? first->reopen_wait_ns * 2 : REOPEN_FIRST_NS;
        if (first->reopen_wait_ns > REOPEN_LAST_NS) first->reopen_wait_ns = REOPEN_LAST_NS;
        first->reopen_ns = now_ns + first->reopen_wait_ns;
    }
    ss_engine_unlock(first);
}

void ss_ports_update(struct ss_engine *first) {
    for (uint32_t thread = 0; thread < first->threads; thread++) { /* each follows the MTU */
        uint32_t at = 0, number;
        while ((number = next_stale(first->threads_of[thread], &at)) != SS_PORT_NUMBERS)
            for (uint32_t i = 0; i < first->threads; i++) close_port(first->threads_of[i], number);
    }
    for (uint32_t i = 0; i < first->threads; i++) open_ports(first->threads_of[i]);
    for (uint32_t i = 0; i < first->threads; i++) update_cores(first->threads_of[i]); /* a port is up once all have it open */
    bool has_failed = false;
    for (uint32_t i = 0; i < first->threads; i++) has_failed |= report_errors(first->threads_of[i], first);
    schedule_reopening(first, has_failed);
}

static bool needs_update(struct ss_interface *interface, bool is_reopening) {
    if (!interface->kind->link) return false;
    return ss_interface_is_open(interface) ? ss_interface_is_stale(interface) : !is_reopening;
}

void ss_ports_look(struct ss_engine *first) {
    bool is_due = false;
    ss_engine_lock(first);
    bool is_reopening = first->reopen_ns != SS_NEVER; /* closed ports are tried again anyway */
    ss_engine_unlock(first);
    for (uint32_t thread = 0; thread < first->threads; thread++) {
        struct ss_engine *engine = first->threads_of[thread];
        ss_engine_lock(engine);
        for (uint32_t i = 0; i < engine->port_count; i++) is_due |= needs_update(&engine->ports[i]->interface, is_reopening);
        ss_engine_unlock(engine);
        update_cores(engine);
    }
    if (is_due) ss_ports_update(first);
    ss_engine_lock(first);
    first->look_ns = SS_NEVER;
    for (uint32_t i = 0; i < first->port_count; i++)
        if (first->ports[i]->interface.kind->link) first->look_ns = ss_clock_ns() + LOOK_NS;
    ss_engine_unlock(first);
}

/* An interface that goes down sets a socket error, which the next send would report. */
void ss_ports_clear_error(struct ss_engine *engine, uint32_t number) {
    ss_engine_lock(engine);
    struct ss_engine_port *port = engine->by_number[number];
    int error;
    socklen_t size = sizeof error;
    if (port && port->interface.wait_fd >= 0) getsockopt(port->interface.wait_fd, SOL_SOCKET, SO_ERROR, &error, &size);
    ss_engine_unlock(engine);
}

static void close_captures(struct ss_engine_port *port) {
    for (int d = 0; d < SS_ENGINE_DIRECTIONS; d++) {
        if (port->capture[d]) fclose(port->capture[d]);
        port->capture[d] = NULL;
    }
}

void ss_engine_port_free(struct ss_engine_port *port) {
    update_core(port, false);
    close_captures(port);
    for (int d = 0; d < SS_ENGINE_DIRECTIONS; d++) ss_fault_free(&port->injector[d]);
    ss_interface_close(&port->interface);
    free(port);
}

/* A thread has files of its own: IFNAME_in.pcap, IFNAME_in.1.pcap, and so on. */
static int open_captures(struct ss_engine_port *port, const char *directory) {
    static const char *const suffix[SS_ENGINE_DIRECTIONS] = {"in", "out"};
    char thread[16] = "";
    if (port->interface.thread) snprintf(thread, sizeof thread, ".%u", port->interface.thread);
    close_captures(port);
    for (int d = 0; directory && d < SS_ENGINE_DIRECTIONS; d++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s_%s%s.pcap", directory, port->interface.ifname, suffix[d], thread) >= PATH_MAX)
            return -ENAMETOOLONG;
        if (!(port->capture[d] = ss_pcap_open(path))) return -errno;
    }
    return 0;
}

int ss_engine_set_capture(struct ss_engine *engine, const char *directory) {
    char *kept = directory ? strdup(directory) : NULL;
    if (directory && !kept) return -ENOMEM;
    int error = 0;
    ss_engine_lock(engine);
    free(engine->capture_directory);
    engine->capture_directory = kept;
    for (uint32_t i = 0; i < engine->port_count && !error; i++) error = open_captures(engine->ports[i], kept);
    ss_engine_unlock(engine);
    return error;
}

/* Checks the kernel's rule (dev_valid_name), because the name is also that of a capture file. Only DPDK's have colons. */
static bool is_name(const char *ifname, bool is_netdev) {
    bool is_dots = strcmp(ifname, ".") == 0 || strcmp(ifname, "..") == 0;
    return *ifname && !is_dots && !strpbrk(ifname, is_netdev ? "/: \t\n\v\f\r" : "/ \t\n\v\f\r");
}

static int check_new_port(const struct ss_engine *engine, uint32_t number, const char *ifname, bool is_netdev) {
    if (number > SS_MAX_PORT || number == engine->cpu_port || !is_name(ifname, is_netdev)) return -EINVAL;
    if (strlen(ifname) >= IF_NAMESIZE) return -ENAMETOOLONG;
    if (engine->by_number[number]) return -EEXIST;
    for (uint32_t i = 0; i < engine->port_count; i++)
        if (strcmp(engine->ports[i]->interface.ifname, ifname) == 0) return -EEXIST;
    return 0;
}

/* Emulated links are slow, and many: their ports keep the small ring. */
static uint32_t run_ring_bytes(struct ss_engine *engine, uint32_t number) {
    ss_engine_lock(engine);
    uint32_t bytes = engine->merges_runs ? engine->run_ring_bytes : 0, used = 0;
    for (uint32_t i = 0; i < engine->port_count; i++) used += engine->ports[i]->interface.run_ring_bytes;
    while (bytes && bytes + (uint64_t)used > engine->run_rings_bytes) bytes /= 2;
    if (bytes < SS_RUN_RING_MIN) bytes = 0;
    ss_engine_unlock(engine);
    return ss_port_rate(engine->sw, number) ? 0 : bytes;
}

/* The kind of a new port, its descriptors or -1, and its device of DPDK. */
struct source {
    const struct ss_port_kind *kind;
    int given_fd, sockets_fd;
    const char *device;
    uint32_t mtu;
};

static int make_port(struct ss_engine *engine, uint32_t number, const char *ifname, struct source source, const char *directory,
                     struct ss_engine_port **out) {
    struct ss_engine_port *port = calloc(1, sizeof *port);
    if (!port) return -ENOMEM;
    port->engine = engine;
    ss_interface_init(&port->interface, source.kind, number, ifname, engine->thread_index, engine->threads);
    port->interface.given_fd = source.given_fd;
    port->interface.sockets_fd = source.sockets_fd;
    port->interface.device = source.device;
    port->interface.wanted_mtu = source.mtu;
    port->interface.run_ring_bytes = run_ring_bytes(engine, number);
    int error = open_captures(port, directory);
    if (!error) error = open_port(engine, port);
    if (error && error != -ENODEV) {
        ss_engine_port_free(port);
        return error;
    }
    *out = port;
    return 0;
}

static void insert_port(struct ss_engine *engine, struct ss_engine_port *port) {
    uint32_t at = engine->port_count++;
    for (; at && engine->ports[at - 1]->interface.number > port->interface.number; at--)
        engine->ports[at] = engine->ports[at - 1];
    engine->ports[at] = port;
    engine->by_number[port->interface.number] = port;
    port->reported_error = port->error;
    (void)steer(engine, port);
    port->interface.wants_runs = engine->merges_runs;
    ss_interface_update(&port->interface, engine->now_ns, false);
    if (port->interface.kind->link && !engine->thread_index) engine->look_ns = engine->now_ns;
    update_core(port, ss_interface_is_oper_up(&port->interface));
}

/* Opens the sockets outside the lock, which would block the other ports' frames. */
static int add_port(struct ss_engine *engine, uint32_t number, const char *ifname, struct source source) {
    struct ss_engine_port *port;
    ss_engine_lock(engine);
    int error = check_new_port(engine, number, ifname, !source.kind->link);
    char *directory = !error && engine->capture_directory ? strdup(engine->capture_directory) : NULL;
    ss_engine_unlock(engine);
    if (error) return error;
    error = make_port(engine, number, ifname, source, directory, &port);
    if (error) {
        free(directory);
        return error;
    }
    ss_engine_lock(engine);
    if (!(error = check_new_port(engine, number, ifname, !source.kind->link))) {
        /* Captures may have started or ended since. */
        const char *now = engine->capture_directory;
        if ((!now != !directory) || (now && strcmp(now, directory) != 0)) error = open_captures(port, now);
    }
    if (!error) insert_port(engine, port);
    bool waits = !error && !ss_interface_is_open(&port->interface);
    ss_engine_unlock(engine);
    free(directory);
    if (error)
        ss_engine_port_free(port);
    else if (waits) { /* the interface may have appeared before the port was inserted */
        open_ports(engine);
        update_cores(engine);
    } else
        eventfd_write(engine->wake_fd, 1); /* frames may have arrived */
    return error;
}

int ss_engine_add_port(struct ss_engine *engine, uint32_t number, const char *ifname) {
    return add_port(engine, number, ifname, (struct source){&ss_packet_port, -1, -1, NULL, 0});
}

int ss_engine_add_socket(struct ss_engine *engine, uint32_t number, const char *name, int fd) {
    return fd < 0 ? -EBADF : add_port(engine, number, name, (struct source){&ss_socket_port, fd, -1, NULL, 0});
}

int ss_engine_add_xdp(struct ss_engine *engine, uint32_t number, const char *ifname, int program_fd, int sockets_fd) {
    return add_port(engine, number, ifname, (struct source){&ss_xdp_port, program_fd, sockets_fd, NULL, 0});
}

int ss_engine_add_device(struct ss_engine *engine, uint32_t number, const char *name, const struct ss_port_kind *kind,
                         const char *device, uint32_t mtu) {
    return add_port(engine, number, name, (struct source){kind, -1, -1, device, mtu});
}

int ss_engine_remove_port(struct ss_engine *engine, uint32_t number) {
    ss_engine_lock(engine);
    struct ss_engine_port *port = number < SS_PORT_NUMBERS ? engine->by_number[number] : NULL;
    if (port) {
        uint32_t at = 0;
        while (engine->ports[at] != port) at++;
        engine->port_count--;
        for (; at < engine->port_count; at++) engine->ports[at] = engine->ports[at + 1];
        engine->by_number[number] = NULL;
    }
    ss_engine_unlock(engine);
    if (port) ss_engine_port_free(port);
    return port ? 0 : -ENOENT;
}

int ss_engine_set_faults(struct ss_engine *engine, uint32_t number, int direction, const struct ss_fault_settings *settings) {
    if (direction < 0 || direction >= SS_ENGINE_DIRECTIONS) return -EINVAL;
    ss_engine_lock(engine);
    struct ss_engine_port *port = number < SS_PORT_NUMBERS ? engine->by_number[number] : NULL;
    if (port) ss_fault_configure(&port->injector[direction], settings);
    ss_engine_unlock(engine);
    return port ? 0 : -ENOENT;
}

void ss_engine_set_gso(struct ss_engine *engine, int on, uint32_t ring_bytes, uint32_t all_bytes) {
    ss_engine_lock(engine);
    engine->merges_runs = on != 0;
    engine->run_ring_bytes = ring_bytes;
    engine->run_rings_bytes = all_bytes;
    for (uint32_t i = 0; i < engine->port_count; i++) {
        engine->ports[i]->interface.wants_runs = on != 0;
        ss_interface_update(&engine->ports[i]->interface, engine->now_ns, false);
    }
    ss_engine_unlock(engine);
}

static void fill_status(struct ss_engine_port *port, struct ss_engine_port_status *out) {
    ss_interface_read_drops(&port->interface);
    *out = (struct ss_engine_port_status){.number = port->interface.number,
                                          .up = ss_interface_is_open(&port->interface),
                                          .merges = port->interface.merges,
                                          .error = port->error,
                                          .zero_copy = port->interface.is_zero_copy,
                                          .oper_up = port->oper_up,
                                          .counters = port->interface.counters};
    memcpy(out->ifname, port->interface.ifname, IF_NAMESIZE);
    memccpy(out->kind, port->interface.kind->name, 0, SS_KIND_NAME - 1);
    for (int d = 0; d < SS_ENGINE_DIRECTIONS; d++) {
        out->faults[d] = port->injector[d].counters;
        out->fault_settings[d] = port->injector[d].settings;
    }
}

uint32_t ss_engine_ports(struct ss_engine *engine, struct ss_engine_port_status *out, uint32_t capacity) {
    ss_engine_lock(engine);
    uint32_t count = engine->port_count;
    for (uint32_t i = 0; i < count && i < capacity; i++) fill_status(engine->ports[i], &out[i]);
    ss_engine_unlock(engine);
    return count;
}
