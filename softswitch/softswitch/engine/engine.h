/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The I/O engine: one thread that moves frames between network interfaces and a shard of the switch core.
 *
 * Call the functions from any thread but the engine's own. Those that return int return 0 or a negative errno. */

#ifndef SS_ENGINE_H
#define SS_ENGINE_H

#include <stdint.h>

#include <linux/filter.h>

#include "fault_injector.h"
#include "interface.h"
#include "switch.h"
#include "xdp_program.h"

enum { SS_ENGINE_IN = 0, SS_ENGINE_OUT = 1, SS_ENGINE_DIRECTIONS = 2, SS_KIND_NAME = 8, SS_RUN_RING_MIN = 2 << 20 };

#pragma GCC visibility push(default)

struct ss_engine;

struct ss_engine_port_status {
    uint32_t number;
    uint32_t up;      /* the interface exists and is bound */
    uint32_t oper_up; /* and is up, with a carrier: decides the liveness of watch ports */
    uint32_t merges;  /* runs of frames leave as one */
    uint32_t zero_copy; /* the driver reads and writes the frames where they lie */
    int32_t error; /* why it is not open, an errno; 0: it is open, or waits for the threads before */
    char ifname[IF_NAMESIZE];
    char kind[SS_KIND_NAME];
    struct ss_interface_counters counters;
    struct ss_fault_counters faults[SS_ENGINE_DIRECTIONS];
    struct ss_fault_settings fault_settings[SS_ENGINE_DIRECTIONS];
};

struct ss_engine_stats {
    uint64_t batches;         /* batches run */
    uint64_t sleeps;          /* of them, those that received nothing */
    uint64_t unknown_port;    /* frames sent to a port without an interface */
    uint64_t packet_in_lost;  /* frames for the controller dropped at a full queue */
    uint64_t cpu_ns;          /* processor time of the data-plane thread */
};

/* Creates an engine for `sw`, which must outlive it. Frames sent to `cpu_port` enter the packet-in queue. Returns NULL with
 * errno set on failure. */
struct ss_engine *ss_engine_new(struct ss_switch *sw, uint32_t cpu_port);

/* Makes engines of the shards of one switch (ss_set_threads), in their order, threads of it: each has its own sockets of every port,
 * and frames that belong to another one are handed over. Before ports are added. Add, change and remove ports at all of them, in
 * their order; stop all before the first one is freed. -ENOMEM, or another negative errno. */
int ss_engine_join(struct ss_engine *const *engines, uint32_t count);

/* Sets the program that chooses the thread of a frame, of the first thread's engine: classic BPF that returns the index of a
 * thread. Length 0: the first thread receives all. Returns -EINVAL if it is too long, or the kernel refuses it. */
int ss_engine_set_steering(struct ss_engine *engine, const struct sock_filter *program, uint32_t length);

int ss_engine_start(struct ss_engine *engine);

/* Forwards the frames already received, flushes the captures and ends the thread. */
void ss_engine_stop(struct ss_engine *engine);
void ss_engine_free(struct ss_engine *engine);

/* Adds a port on an interface. If the interface is absent the port comes up when it appears. Returns -EEXIST if the number or
 * the interface is in use, -EINVAL for a number above SS_MAX_PORT or the CPU port's, or -ENAMETOOLONG. */
int ss_engine_add_port(struct ss_engine *engine, uint32_t number, const char *ifname);

/* Adds a port on a Unix datagram socket, one frame a datagram; `fd` stays the caller's. `name` names the port's captures and
 * status. Returns errors as above; -EBADF, -ENOTSOCK or -EPROTOTYPE if it is no Unix datagram socket. */
int ss_engine_add_socket(struct ss_engine *engine, uint32_t number, const char *name, int fd);

/* Adds a port on an interface by AF_XDP, with a program and table of ss_xdp_load, which stay the caller's and open as long as the
 * port exists. Returns errors as ss_engine_add_port; -EMSGSIZE for an MTU above 3,818, -EUSERS if the device has not one receive
 * queue for each thread, -EBUSY if it has another program. */
int ss_engine_add_xdp(struct ss_engine *engine, uint32_t number, const char *ifname, int program_fd, int sockets_fd);

/* Adds a port on a device of a kind from another library, ss_dpdk_port. `device`: DPDK's name of it, `name`, with its arguments, which
 * stays the caller's and as it is while the port exists. `mtu`: of a device that the kernel does not have; 0: the usual one. Returns
 * errors as ss_engine_add_port; -EIO if the driver refuses it, -EMSGSIZE for a larger MTU than it has, -EUSERS if it has not one
 * queue in each direction for each thread. */
int ss_engine_add_device(struct ss_engine *engine, uint32_t number, const char *name, const struct ss_port_kind *kind,
                         const char *device, uint32_t mtu);
int ss_engine_remove_port(struct ss_engine *engine, uint32_t number); /* -ENOENT */

/* Sets the fault injector of one direction of a port's link. Returns -ENOENT or -EINVAL on failure. */
int ss_engine_set_faults(struct ss_engine *engine, uint32_t number, int direction, const struct ss_fault_settings *settings);

/* Sets whether frames of one flow and length that follow each other leave as one frame, which the device or the receiver
 * segments. Where the device does not (`ethtool -k`), and while another socket captures on the interface, they leave one by
 * one. It is off initially: a packet socket at the other end of a veth pair sees such frames unsegmented. Ports without a rate
 * that are added later receive such frames in rings of `ring_bytes`, a power of two of at least SS_RUN_RING_MIN, or of half as
 * much and so on, once the rings of the engine would exceed `all_bytes`. Others take a system call for each. */
void ss_engine_set_gso(struct ss_engine *engine, int on, uint32_t ring_bytes, uint32_t all_bytes);

/* Captures every port's frames in `directory`/IFNAME_in.pcap and IFNAME_out.pcap; NULL ends it. */
int ss_engine_set_capture(struct ss_engine *engine, const char *directory);

/* Fills `out` with up to `capacity` ports, ascending by number; returns the number of ports. */
uint32_t ss_engine_ports(struct ss_engine *engine, struct ss_engine_port_status *out, uint32_t capacity);
void ss_engine_stats_get(struct ss_engine *engine, struct ss_engine_stats *out);

/* Runs an empty batch: updates the core's clock and rearms the timer. Call it before control operations that read the clock
 * (idle times) and after those that can bring its next deadline forward (an idle timeout, a port's rate). */
void ss_engine_service(struct ss_engine *engine);

/* Runs a frame through the pipeline, received on the CPU port. */
int ss_engine_packet_out(struct ss_engine *engine, const uint8_t *data, uint32_t length);

/* Returns a descriptor, an eventfd, that is readable once `error` of a port has changed. The engine owns it. */
int ss_engine_port_change_fd(const struct ss_engine *engine);

/* Returns a descriptor that is readable while packet-ins are queued. The engine owns it. */
int ss_engine_packet_in_fd(const struct ss_engine *engine);
/* Takes the oldest packet-in. Returns its length, or -1 if there is none. */
int64_t ss_engine_packet_in(struct ss_engine *engine, uint8_t *data, uint32_t capacity);

#pragma GCC visibility pop

#endif
