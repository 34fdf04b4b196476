/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the agent (`netfold roce agent`), which is the job's member at the controller: lines over a stream. A thread
 * reads them and sends heartbeats.
 *
 * From the agent
 *   assign EPOCH ADDRESS RANK WORKERS LANES NUMERICS LEASE_MS TREES, then for each tree TREE SLOTS WINDOW SHARE_PPB
 *   ring EPOCH MIN_CALLS MAX_CALLS SOURCE_RANK TREES, then for each tree
 *       TREE SUCCESSOR_IP SUCCESSOR_QPN PREDECESSOR_IP PREDECESSOR_QPN PREDECESSOR_PSN
 *   left EPOCH CALL_LIMIT FINAL PRESENT CALLS HOSTS     of the epoch that was assigned last
 *   ended REASON...
 * From the worker
 *   hello 2
 *   alive
 *   qps EPOCH CALLS TREES, then for each tree TREE SEND_QPN RECV_QPN FIRST_PSN
 *   new-epoch EPOCH      a new epoch in place of this one
 *   report PACKETS
 *   leave CALLS
 * CALLS of "qps" is NR_CALLS_MISMATCH if in the previous epoch this worker saw that workers called with different arrays: the other
 * workers fail their call, too.
 *
 * "left" names workers that have left after CALLS calls (docs/reference/protocol.md, 5.7). Calls from CALL_LIMIT on are not
 * completed in the epoch, and with FINAL in no later one. PRESENT: these workers take part in the epoch. */
#ifndef NETFOLD_ROCE_CONTROL_H
#define NETFOLD_ROCE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "worker.h"

enum { NR_TREES = 16, NR_REASON_BYTES = 256, NR_LEFT_BYTES = 128 };
#define NR_CALLS_MISMATCH (1ULL << 62)

struct nr_tree {
    uint32_t tree, slots, window;
    double share;
};

/* Workers that have left; none while `hosts` is empty. */
struct nr_departures {
    uint64_t call_limit, calls;
    bool is_final, are_present;
    char hosts[NR_LEFT_BYTES];
};

struct nr_assignment {
    uint32_t epoch, rank, workers, lanes, trees;
    bool integer, floats, quarter; /* numerics: integer, float32 or quarter, else block */
    char address[16];
    struct nr_tree tree[NR_TREES];
    struct nr_departures left;
};

struct nr_neighbors {
    uint32_t tree;
    char successor_ip[16], predecessor_ip[16];
    uint32_t successor_qpn, predecessor_qpn, predecessor_psn;
};

/* Minimum and maximum of the calls that workers have completed. If they differ, rank `source_rank` hands the result of the last
 * one over. */
struct nr_ring {
    uint32_t epoch, trees, source_rank;
    uint64_t min_calls, max_calls;
    struct nr_neighbors tree[NR_TREES];
};

struct nr_control;

enum nr_error nr_control_open(struct nr_control **control, const char *agent, char reason[NR_REASON_BYTES]);
void nr_control_close(struct nr_control *control);
/* Readable after a line was received. */
int nr_control_descriptor(struct nr_control *control);
enum nr_error nr_control_send(struct nr_control *control, const char *line);
/* The last line: the agent may be gone as soon as the job has ended, and a serial port of QEMU never recovers from bytes without
 * a reader. */
enum nr_error nr_control_leave(struct nr_control *control, uint64_t calls);
/* The newest of each; an epoch of 0 if there is none. NR_JOB_ENDED, NR_AGENT, NR_ASSIGNMENT with `reason`. */
enum nr_error nr_control_poll(struct nr_control *control, struct nr_assignment *assignment, struct nr_ring *ring,
                              char reason[NR_REASON_BYTES]);

#endif
