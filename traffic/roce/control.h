/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the agent (`netfold roce agent`), which is the job's member at the controller: traffic/agent/messages.h over a
 * stream. A thread receives the messages and sends heartbeats. */
#ifndef NETFOLD_ROCE_CONTROL_H
#define NETFOLD_ROCE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "../agent/messages.h"
#include "worker.h"

enum { NR_TREES = NA_RINGS_MAX, NR_REASON_BYTES = 256 };

struct nr_tree {
    uint32_t tree, slots, window;
    double share;
};

/* Workers that have left; none while `hosts` is empty. */
struct nr_departures {
    uint64_t call_limit, calls;
    bool is_final, are_present;
    char hosts[NA_HOSTS_BYTES];
};

struct nr_assignment {
    uint32_t epoch, rank, workers, lanes, trees;
    bool integer, floats, quarter; /* numerics: integer, float32 or quarter, else block */
    char address[NA_ADDRESS_BYTES];
    struct nr_tree tree[NR_TREES];
    struct nr_departures left;
};

struct nr_calls;
struct nr_control;

/* Heartbeats report `calls`. */
enum nr_error nr_control_open(struct nr_control **control, const char *agent, struct nr_calls *calls,
                              char reason[NR_REASON_BYTES]);
void nr_control_close(struct nr_control *control);
/* Readable after a message was received. */
int nr_control_descriptor(struct nr_control *control);
enum nr_error nr_control_send(struct nr_control *control, enum na_message_type type, const void *body, size_t size);
/* Nothing is sent after it: the agent may be gone as soon as the job has ended, and a serial port of QEMU never recovers from
 * bytes without a reader. */
enum nr_error nr_control_leave(struct nr_control *control);
/* Sends the last calls, if the user wants dumps. */
void nr_control_dump(struct nr_control *control);
/* The newest of each; an epoch of 0 if there is none. NR_JOB_ENDED, NR_AGENT, NR_ASSIGNMENT with `reason`. */
enum nr_error nr_control_poll(struct nr_control *control, struct nr_assignment *assignment, struct na_ring *ring,
                              char reason[NR_REASON_BYTES]);

#endif
