/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A segment is consecutive places of a stream with one meaning. Its part (parts/) knows what its chunks carry; the transport
 * knows only these operations. */

#ifndef NETFOLD_SEGMENT_H
#define NETFOLD_SEGMENT_H

#include <stdint.h>

#include "../wire/header.h"

struct segment;
struct tree;

/* MAIN has the chunks of calls that are known in advance, CONTROL those that only results determine. GATHER has the data of
 * gathers: they load the way down, and do not wait for those that load the way up. */
enum stream_id { MAIN, CONTROL, GATHER, STREAMS };

struct part_ops {
    enum stream_id stream;
    int can_seal; /* in a job with a quorum its sums may be sealed early */

    /* Writes lanes, exponent and flags of a chunk when it is sent for the first time. `h` is zero from the flags on, except for
     * lanes: they are of an earlier chunk. A targeted chunk gets its target and D here. */
    void (*fill)(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h);

    /* Consumes the result of a chunk, which has lanes if this worker wants them. Returns an nf_status: NF_PENDING, or why the owner cannot continue. */
    int64_t (*take)(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now);
};

/* Tracks how a call's sums were sealed lately, in a job with a quorum. */
struct quorum_tracker {
    int64_t last_partial_count; /* contributions in the last sum that was sealed without all; 0: none was */
};

struct segment {
    struct segment *next;
    const struct part_ops *ops;
    void *owner; /* of the part */
    int64_t first, stripe; /* of data: the first row, and the stripe that it is in */
    int64_t base, count, remaining; /* first place; chunks; chunks without a result */
    struct quorum_tracker *quorum; /* NULL: all have to contribute */
    int is_held; /* its contents are not known yet: neither it nor what follows it is sent */
    double first_acked_at; /* chunks sent before this may have waited for slower workers */
};

#endif
