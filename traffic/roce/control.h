/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's conversation with its agent (`netfold roce agent`), which attends the job for it: lines of words over a
 * stream. A thread of its own reads them and says every so often that the worker lives.
 *
 *   assign EPOCH ADDRESS RANK WORKERS LANES NUMERICS LEASE_MS TREES then for each tree TREE SLOTS WINDOW SHARE_PPB
 *   ring EPOCH LEAST MOST GIVER TREES then for each TREE NEXT_IP NEXT_QPN BEFORE_IP BEFORE_QPN BEFORE_PSN
 *   over REASON...
 * and from the worker
 *   hello 1 | alive | ends EPOCH CALLS TREES then TREE OUT_QPN IN_QPN FIRST_PSN | worn EPOCH | report PACKETS | leave
 * CALLS is NR_MISMATCHED of a worker that saw in the epoch before that workers called with different arrays: so all hear. */
#ifndef NETFOLD_ROCE_CONTROL_H
#define NETFOLD_ROCE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "worker.h"

enum { NR_TREES = 16, NR_WHY = 256 };
#define NR_MISMATCHED (1ULL << 62)

struct nr_tree {
    uint32_t tree, slots, window;
    double share;
};

struct nr_assignment {
    uint32_t epoch, rank, workers, lanes, trees;
    bool integer, floats; /* numerics: integer or float32, else block */
    char address[16];
    struct nr_tree tree[NR_TREES];
};

struct nr_neighbors {
    uint32_t tree;
    char next_ip[16], before_ip[16];
    uint32_t next_qpn, before_qpn, before_psn;
};

/* The smallest and largest number of calls that workers have completed; where they differ, `giver` is the rank that has
 * the result of the last one for the others. */
struct nr_ring {
    uint32_t epoch, trees, giver;
    uint64_t least, most;
    struct nr_neighbors tree[NR_TREES];
};

struct nr_control;

enum nr_error nr_control_open(struct nr_control **control, const char *agent, char why[NR_WHY]);
void nr_control_close(struct nr_control *control);
/* Readable when there is news. */
int nr_control_wake(struct nr_control *control);
enum nr_error nr_control_say(struct nr_control *control, const char *line);
/* Nothing is said after it: the agent may be gone as soon as the job is over. A serial port of QEMU never recovers from
 * words that nobody is there to take. */
enum nr_error nr_control_leave(struct nr_control *control);
/* The newest of each; an epoch of 0 if there is none. NR_JOB_OVER, NR_AGENT, NR_ASSIGNMENT with `why`. */
enum nr_error nr_control_news(struct nr_control *control, struct nr_assignment *assignment, struct nr_ring *ring,
                              char why[NR_WHY]);

#endif
