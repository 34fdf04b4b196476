/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The devices of DPDK that are ports, each with a queue in both directions for every thread. They are compiled into a library of
 * their own, which a process loads that has such ports. */

#ifndef SS_DPDK_DEVICE_H
#define SS_DPDK_DEVICE_H

#include <rte_mempool.h>

#include "interface.h"

enum {
    SS_DPDK_BURST = 32, /* frames that a driver is asked for or given at once */
    SS_DPDK_QUEUE = 256, /* frames of a port that its driver has not taken */
};

struct ss_dpdk_device {
    struct ss_dpdk_device *next;
    char name[IF_NAMESIZE];
    bool is_virtual;
    uint16_t id;
    uint32_t threads, users; /* queues, and how many of them are open */
    uint32_t send_descriptors; /* of a queue */
    struct rte_mempool *pool; /* outlives a closing, as other ports may have its frames */
    uint32_t room; /* the longest frame of the pool */
};

#pragma GCC visibility push(default)

/* Initializes DPDK for this process with the arguments of its EAL, once. Returns 0 or a negative errno; `message` is then what DPDK
 * printed. */
int ss_dpdk_start(int count, char **arguments, char *message, uint32_t size);

extern const struct ss_port_kind ss_dpdk_port;

#pragma GCC visibility pop

/* Opens the queues of the interface's thread; the first thread's call starts the device. Sets what the interface has of its
 * device. Returns 0 or a negative errno: -ENODEV: the device is absent; -EIO: the driver refuses it, which DPDK's log explains. */
int ss_dpdk_open(struct ss_interface *interface, struct ss_dpdk_device **device);

/* Closes them. The last call stops the device, and removes it if it is virtual or gone. */
void ss_dpdk_close(struct ss_dpdk_device *device);

#endif
