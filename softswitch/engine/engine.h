/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The I/O engine: one thread that carries frames between network interfaces and the switch core.
 *
 * All functions may be called from any thread but the engine's own. Those that return int give 0 or a negative errno. */

#ifndef NETFOLD_ENGINE_H
#define NETFOLD_ENGINE_H

#include <stdint.h>

#include "faults.h"
#include "port.h"
#include "switch.h"

enum { ENGINE_IN = 0, ENGINE_OUT = 1, ENGINE_DIRECTIONS = 2 };

struct engine;

struct engine_port_status {
    uint32_t number;
    uint32_t up;   /* the interface exists and is bound */
    uint32_t live; /* and is up, with a carrier: what watch ports go by */
    char ifname[IF_NAMESIZE];
    struct port_counters counters;
    struct fault_counters faults[ENGINE_DIRECTIONS];
};

struct engine_stats {
    uint64_t batches;         /* batches run */
    uint64_t sleeps;          /* of them, those after which there was nothing more to do */
    uint64_t unknown_port;    /* frames that the program sent to a port that has no interface */
    uint64_t packet_in_lost;  /* frames for the controller that came while their queue was full */
    uint64_t cpu_ns;          /* processor time of the data-plane thread */
};

/* An engine for `sw`, which must outlive it. Frames sent to `cpu_port` go to the packet-in queue. NULL with errno set. */
struct engine *engine_new(struct ss_switch *sw, uint32_t cpu_port);
int engine_start(struct engine *engine);

/* Takes no new frames, forwards those already received, flushes the captures, and ends the thread. */
void engine_stop(struct engine *engine);
void engine_free(struct engine *engine);

/* Gives the switch a port on an interface. The interface may be missing: the port comes up when it appears. -EEXIST when
 * the number or the interface is taken, -EINVAL for a number above SS_MAX_PORT or the CPU port's, -ENAMETOOLONG. */
int engine_add_port(struct engine *engine, uint32_t number, const char *ifname);
int engine_remove_port(struct engine *engine, uint32_t number); /* -ENOENT */

/* What the line in front of a port does to frames in one direction; -ENOENT, -EINVAL. */
int engine_set_faults(struct engine *engine, uint32_t number, int direction, const struct fault_settings *settings);

/* Records every port's frames in `directory`/IFNAME_in.pcap and IFNAME_out.pcap, from now on; NULL ends it. */
int engine_set_capture(struct engine *engine, const char *directory);

/* Fills `out` with up to `room` ports, ascending by number; returns how many ports there are. */
uint32_t engine_ports(struct engine *engine, struct engine_port_status *out, uint32_t room);
void engine_stats_get(struct engine *engine, struct engine_stats *out);

/* Gives the core the time of now and sets the timer by its answer: to be called before control operations that look at its
 * clock (idle times), and after those that may bring its next deadline forward (an idle timeout, a port's rate). */
void engine_service(struct engine *engine);

/* Runs a frame through the pipeline as if it had come in on the CPU port. */
int engine_packet_out(struct engine *engine, const uint8_t *data, uint32_t length);

/* Readable when engine_packet_in has something. Belongs to the engine. */
int engine_packet_in_fd(const struct engine *engine);
/* The oldest waiting frame; returns its length, or -1. */
int64_t engine_packet_in(struct engine *engine, uint8_t *data, uint32_t room);

#endif
