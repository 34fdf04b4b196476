/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* One all-reduce over the links of an epoch: an array cut into messages, sent under the credit, and the sums that come
 * back in their place.
 *
 * The messages of a tree's part of the array, D of them with data:
 *   block     N of one packet, whose headers bear the exponents of the first N that have data; then D; then one more
 *   others    D; then one more
 * Each begins with a header (numbers.h); that of message m has the exponents of message m + N, which is not sent before.
 * A message is only believed when a later header was added up by all: so the last has no data, and a fabric that stopped
 * to add up in the middle (its entries went with the job) is noticed. */
#ifndef NETFOLD_ROCE_CALL_H
#define NETFOLD_ROCE_CALL_H

#include "links.h"

enum nr_kind {
    NR_KIND_BLOCK,
    NR_KIND_INTEGER,
    NR_KIND_FLOATS,
    NR_KIND_WORDS /* 32-bit words of one worker, zeros (as floats: -0) of the others */
};

enum nr_outcome {
    NR_DONE,
    NR_NEWS,     /* the epoch or the job ended */
    NR_LATE,     /* the deadline passed */
    NR_BROKEN,   /* a connection broke, or nobody adds up: a new epoch may help */
    NR_OUT_OF_STEP, /* another worker's call is another one */
};

struct nr_call {
    enum nr_kind kind;
    enum nr_op op;
    uint64_t number;
    size_t elements;
    const void *from; /* NULL: zeros */
    void *to;
    /* what the sums said, at every worker alike */
    bool overflow, not_finite;
};

/* Packets that a call takes of the tree with the most. */
uint64_t nr_call_packets(const struct nr_call *call, const struct nr_assignment *assignment, const struct nr_link *links);
/* Looked at while nothing comes: where the descriptor is readable, `ends(context)` says whether the call is given up. */
struct nr_watch {
    int descriptor;
    bool (*ends)(void *context);
    void *context;
};

/* Ends with the last sum. What the next worker has not acknowledged by then, the device goes on to send. `until` is a time of
 * CLOCK_MONOTONIC in seconds. */
enum nr_outcome nr_call_run(struct nr_call *call, const struct nr_assignment *assignment, struct nr_device *device,
                            struct nr_link *links, const struct nr_watch *watch, double until, char why[NR_WHY]);
/* Between calls: until the next worker has acknowledged everything. */
enum nr_outcome nr_flush(const struct nr_assignment *assignment, struct nr_device *device, struct nr_link *links,
                         const struct nr_watch *watch, double until, char why[NR_WHY]);
double nr_now(void);

#endif
