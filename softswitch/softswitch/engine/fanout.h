/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The packet sockets of one port, one for each thread of the data plane, share its frames (PACKET_FANOUT). A classic BPF
 * program returns the thread; it needs no rights beyond the sockets'. */

#ifndef SS_FANOUT_H
#define SS_FANOUT_H

#include <linux/filter.h>
#include <stdint.h>

enum { SS_STEERING_STEPS = 128 };

struct ss_steering {
    uint32_t length; /* 0: all frames go to the first thread */
    struct sock_filter step[SS_STEERING_STEPS];
};

/* Keeps frames away from a socket that is not in its group yet: call it before the bind. Returns 0 or a negative errno. */
int ss_fanout_close_gate(int fd);

/* Joins the sockets of the same port, which join in the order of their threads, and opens the gate. `port` tells the groups of
 * one process apart. Returns 0 or a negative errno. */
int ss_fanout_join(int fd, uint32_t port);

/* Sets the program of the whole group. */
int ss_fanout_steer(int fd, const struct ss_steering *steering);

#endif
