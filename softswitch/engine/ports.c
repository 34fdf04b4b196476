/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The ports of an engine: added and removed, bound to interfaces that come and go, faulty, captured, counted. */

#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "inside.h"
#include "pcap.h"

static int open_port(struct engine *engine, struct engine_port *port) {
    int error = port_open(&port->port);
    /* Edge-triggered: the rings are always emptied before the next wait. */
    if (!error && (error = watch(engine, port->port.fd, EVENT_PORT, port->port.number, EPOLLET)))
        port_close(&port->port);
    return error;
}

static void tell_core(struct engine_port *port, bool live) {
    if (live == port->live) return;
    port->live = live;
    (void)ss_port_set_up(port->engine->sw, port->port.number, live);
}

void follow_interfaces(struct engine *engine) {
    enter(engine);
    for (uint32_t i = 0; i < engine->port_count; i++) {
        struct port *port = &engine->ports[i]->port;
        int now = (int)if_nametoindex(port->ifname);
        if (port_is_open(port) && (now != port->ifindex || port_mtu_grew(port))) port_close(port);
        if (now && !port_is_open(port)) (void)open_port(engine, engine->ports[i]);
        port_revive(port);
        tell_core(engine->ports[i], port_is_live(port));
    }
    leave(engine);
}

/* Going down leaves an error on the socket, which would be taken for that of the next send. */
void clear_error(struct engine *engine, uint32_t number) {
    enter(engine);
    struct engine_port *port = engine->by_number[number];
    int error;
    socklen_t size = sizeof error;
    if (port && port_is_open(&port->port)) getsockopt(port->port.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    leave(engine);
}

static void close_captures(struct engine_port *port) {
    for (int d = 0; d < ENGINE_DIRECTIONS; d++) {
        if (port->capture[d]) fclose(port->capture[d]);
        port->capture[d] = NULL;
    }
}

void free_port(struct engine_port *port) {
    tell_core(port, false);
    close_captures(port);
    for (int d = 0; d < ENGINE_DIRECTIONS; d++) fault_free(&port->line[d]);
    port_free(&port->port);
    free(port);
}

static int open_captures(struct engine_port *port, const char *directory) {
    static const char *const suffix[ENGINE_DIRECTIONS] = {"in", "out"};
    close_captures(port);
    for (int d = 0; directory && d < ENGINE_DIRECTIONS; d++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s_%s.pcap", directory, port->port.ifname, suffix[d]) >= PATH_MAX)
            return -ENAMETOOLONG;
        if (!(port->capture[d] = pcap_open(path))) return -errno;
    }
    return 0;
}

int engine_set_capture(struct engine *engine, const char *directory) {
    char *kept = directory ? strdup(directory) : NULL;
    if (directory && !kept) return -ENOMEM;
    int error = 0;
    enter(engine);
    free(engine->capture_directory);
    engine->capture_directory = kept;
    for (uint32_t i = 0; i < engine->port_count && !error; i++) error = open_captures(engine->ports[i], kept);
    leave(engine);
    return error;
}

/* As the kernel has it (dev_valid_name): what follows becomes the name of a capture file too. */
static bool is_name(const char *ifname) {
    return *ifname && strcmp(ifname, ".") != 0 && strcmp(ifname, "..") != 0 && !strpbrk(ifname, "/: \t\n\v\f\r");
}

static int check_new_port(const struct engine *engine, uint32_t number, const char *ifname) {
    if (number > SS_MAX_PORT || number == engine->cpu_port || !is_name(ifname)) return -EINVAL;
    if (strlen(ifname) >= IF_NAMESIZE) return -ENAMETOOLONG;
    if (engine->by_number[number]) return -EEXIST;
    for (uint32_t i = 0; i < engine->port_count; i++)
        if (strcmp(engine->ports[i]->port.ifname, ifname) == 0) return -EEXIST;
    return 0;
}

static int make_port(struct engine *engine, uint32_t number, const char *ifname, const char *directory,
                     struct engine_port **out) {
    struct engine_port *port = calloc(1, sizeof *port);
    if (!port) return -ENOMEM;
    port->engine = engine;
    int error = port_init(&port->port, number, ifname);
    if (!error) error = open_captures(port, directory);
    if (!error) error = open_port(engine, port);
    if (error && error != -ENODEV) {
        free_port(port);
        return error;
    }
    *out = port;
    return 0;
}

static void insert_port(struct engine *engine, struct engine_port *port) {
    uint32_t at = engine->port_count++;
    for (; at && engine->ports[at - 1]->port.number > port->port.number; at--) engine->ports[at] = engine->ports[at - 1];
    engine->ports[at] = port;
    engine->by_number[port->port.number] = port;
    tell_core(port, port_is_live(&port->port));
}

/* The sockets are set up outside the lock: the other ports' frames do not wait for it. */
int engine_add_port(struct engine *engine, uint32_t number, const char *ifname) {
    struct engine_port *port;
    enter(engine);
    int error = check_new_port(engine, number, ifname);
    char *directory = !error && engine->capture_directory ? strdup(engine->capture_directory) : NULL;
    leave(engine);
    if (error) return error;
    error = make_port(engine, number, ifname, directory, &port);
    if (error) {
        free(directory);
        return error;
    }
    enter(engine);
    if (!(error = check_new_port(engine, number, ifname))) {
        /* The captures may have been begun or ended meanwhile. */
        const char *now = engine->capture_directory;
        if ((!now != !directory) || (now && strcmp(now, directory) != 0)) error = open_captures(port, now);
    }
    if (!error) insert_port(engine, port);
    bool waits = !error && !port_is_open(&port->port);
    leave(engine);
    free(directory);
    if (error) free_port(port);
    else if (waits) follow_interfaces(engine); /* the interface may have appeared before anybody asked for it, */
    else eventfd_write(engine->wake_fd, 1);    /* or frames have come */
    return error;
}

int engine_remove_port(struct engine *engine, uint32_t number) {
    enter(engine);
    struct engine_port *port = number < PORT_NUMBERS ? engine->by_number[number] : NULL;
    if (port) {
        uint32_t at = 0;
        while (engine->ports[at] != port) at++;
        engine->port_count--;
        for (; at < engine->port_count; at++) engine->ports[at] = engine->ports[at + 1];
        engine->by_number[number] = NULL;
    }
    leave(engine);
    if (port) free_port(port);
    return port ? 0 : -ENOENT;
}

int engine_set_faults(struct engine *engine, uint32_t number, int direction, const struct fault_settings *settings) {
    if (direction < 0 || direction >= ENGINE_DIRECTIONS) return -EINVAL;
    enter(engine);
    struct engine_port *port = number < PORT_NUMBERS ? engine->by_number[number] : NULL;
    if (port) fault_configure(&port->line[direction], settings);
    leave(engine);
    return port ? 0 : -ENOENT;
}

static void fill_status(struct engine_port *port, struct engine_port_status *out) {
    port_read_kernel_drops(&port->port);
    *out = (struct engine_port_status){
        .number = port->port.number, .up = port_is_open(&port->port), .live = port->live, .counters = port->port.counters};
    memcpy(out->ifname, port->port.ifname, IF_NAMESIZE);
    for (int d = 0; d < ENGINE_DIRECTIONS; d++) out->faults[d] = port->line[d].counters;
}

uint32_t engine_ports(struct engine *engine, struct engine_port_status *out, uint32_t room) {
    enter(engine);
    uint32_t count = engine->port_count;
    for (uint32_t i = 0; i < count && i < room; i++) fill_status(engine->ports[i], &out[i]);
    leave(engine);
    return count;
}
