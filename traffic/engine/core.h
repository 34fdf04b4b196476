/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A worker's side of a job: packets and the time in, packets and the next deadline out. No I/O, no clock, no threads.
 * docs/protocol.md, section 5. Times are seconds, of any clock that only grows. Not thread-safe. */

#ifndef NETFOLD_CORE_H
#define NETFOLD_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "codec.h"
#include "control.h"

enum { NF_TREES_MAX = 64, NF_HEADER_BYTES = 16, NF_MESSAGE_BYTES = 480 };

struct nf_tree_spec {
    int64_t tree, child, slots, window;
    int64_t endpoint; /* where it sends, and results come from */
    double share;     /* of the paced rate */
    double upto;      /* of the gradient: the shares up to this tree's, its own included */
    char destination[16];
};

/* A worker's part in one epoch. */
struct nf_assignment {
    int64_t epoch, lanes, workers, rounds; /* `rounds`: how often a slot can be used in an epoch */
    int64_t congestion, wire_bytes, tree_count;
    int64_t quorum; /* contributions that are enough once a deadline is over, docs/protocol.md, 3.7. 0: all are wanted */
    int64_t newcomers; /* workers may be there who were in no call of the others': 5.6 */
    double rate_mbps;
    double quorum_deadline; /* what a chunk waits for all */
    struct nf_timing timing;
    struct nf_tree_spec trees[NF_TREES_MAX];
};

enum nf_op { NF_SUM, NF_AVERAGE };

struct nf_request {
    void *array; /* `elements` of `dtype`, where the results go too */
    int64_t elements, dtype, op, scheme, bits;
    double deadline;
};

enum nf_status {
    NF_PENDING,
    NF_DONE,
    NF_TIMEOUT,
    NF_MISMATCH,     /* calls differ */
    NF_OUT_OF_STEP,  /* the workers are in different calls */
    NF_EXHAUSTED,    /* the call needs more chunk numbers than an epoch has */
    NF_SUM_OVERFLOW, /* a sum of integers does not fit; the workers are in step */
    NF_BEYOND_SCALE, /* a sum overflowed at a scale that leaves room for all */
    NF_ABORTED,      /* nf_core_abort, or an earlier call failed */
    NF_NO_MEMORY,
    NF_STRAGGLED, /* with a quorum: the others are so far ahead that a result cannot be had any more */
    NF_NOT_FLOATS /* a sum of floats came from nodes that know none */
};

struct nf_outcome {
    int64_t status, number;
    int64_t index, total, total_high; /* NF_SUM_OVERFLOW: which element, and its sum, of 128 bits */
    int64_t least, most, sums, contributions; /* with a quorum: in a sum of data, at least and at most; in all `sums` */
    char message[NF_MESSAGE_BYTES];
};

enum {
    NF_UNDER_WAY = 4,         /* so many calls may be, fewer where packets have fewer than 9 lanes */
    NF_KEPT_BYTES = 2 << 20,  /* larger calls end with a closing chunk: their results are not kept. PyTorch's first bucket is 1 MiB
                               * and what exceeds it */
};

struct nf_totals {
    int64_t retransmits, restarts, overflows;
    int64_t pending; /* calls that are not over */
    int64_t worn;    /* the epoch of no more use: another one is needed before a call can go on. 0: none */
    int64_t broken;  /* a call was given up in this epoch */
    int64_t owing;   /* other workers may need this one, though it has no call */
    int64_t late;    /* contributions of this worker that came when their sums were sealed */
};

struct nf_tree_report {
    int64_t tree, window, limit, retransmits, probes;
    int64_t results, marked; /* that came in the epoch, and of them with a congestion mark */
    double rtt, rtt_least;
};

/* A packet that is to go. The memory is the core's, and good as long as nf_core_generation does not change. */
struct nf_out {
    const uint8_t *packet;
    int64_t endpoint;
};

struct nf_core;
struct nf_call;

/* NULL: no memory. */
struct nf_core *nf_core_create(void);
void nf_core_destroy(struct nf_core *core);

/* A new epoch; calls under way begin again, or are handed over by workers who have their results. Gives 0, or -1: no memory. */
int nf_core_assign(struct nf_core *core, const struct nf_assignment *assignment, double now);

/* Takes a copy of the array. NULL: no memory. Calls begin and end in the order of submission; NF_UNDER_WAY at a time. */
struct nf_call *nf_core_submit(struct nf_core *core, const struct nf_request *request);

/* What became of the call; the array is written, or as before, once it is not NF_PENDING any more. */
const struct nf_outcome *nf_core_outcome(const struct nf_call *call);

/* Forgets a call that is over. */
void nf_core_release(struct nf_core *core, struct nf_call *call);

/* Ends all calls. */
void nf_core_abort(struct nf_core *core);

/* Ends calls that wait for another epoch, as there is none. */
void nf_core_no_epoch(struct nf_core *core);

/* A packet that came, of `length` bytes; `marked`: it met congestion. */
void nf_core_receive(struct nf_core *core, int64_t endpoint, const uint8_t *packet, int64_t length, int marked, double now);

/* After a batch of packets, or when nf_core_next is due: lets calls, windows and timers go on. */
void nf_core_turn(struct nf_core *core, double now);

/* The next packets to go now, at most `room`; gives how many. */
int64_t nf_core_send(struct nf_core *core, struct nf_out *out, int64_t room, double now);

/* When to turn if nothing comes. */
double nf_core_next(struct nf_core *core, double now);

/* For how many seconds more results may gather while packets are looked for no more: until a quarter of what is under way can be
 * back at the paced rate, up to the assignment's bound; 0: too few are. */
double nf_core_gather(const struct nf_core *core);

int64_t nf_core_generation(const struct nf_core *core);
struct nf_totals nf_core_totals(const struct nf_core *core);
int64_t nf_core_trees(const struct nf_core *core);
struct nf_tree_report nf_core_report(const struct nf_core *core, int64_t tree);

#endif
