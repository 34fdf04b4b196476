/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a call, docs/reference/protocol.md, sections 5.3 and 6, know what their chunks carry and what is done with the
 * results. The owner of their segments is the call. No part changes the state of a call: `take` returns a status. */

#ifndef NETFOLD_PARTS_H
#define NETFOLD_PARTS_H

#include <string.h>

#include "../call/call.h"
#include "../transport/tree_state.h"

struct call_part {
    struct part_ops ops;

    /* Prepares the part; returns the number of its chunks in a tree, or -1 if there is no memory. It is NULL where the session
     * divides the part itself. */
    int64_t (*plan)(struct nf_call *c, const struct tree *t);
};

extern const struct call_part opening_part; /* fingerprint, and the scale of the first rows */
extern const struct call_part data_part; /* rows */
extern const struct call_part gather_part; /* rows of a gather */
extern const struct call_part stripe_tail_part; /* the last rows of a stripe: they wait for the next stripe's division */
extern const struct call_part rate_report_part; /* the trees' rates, which divide a stripe */
extern const struct call_part specials_part; /* codes of NaN and infinities */
extern const struct call_part reencoded_part; /* rows once more, at another scale */
extern const struct call_part closing_part; /* proves that all workers have the result of a large call, or of a scatter */
extern const struct call_part handover_part; /* the retained result of an earlier epoch */

/* These chunks belong to a handover between other workers, to which this worker adds nothing. The owner is not used. */
extern const struct part_ops pass_through_ops;

static inline void clear_lanes(const struct tree *t, struct header *h) { memset(lanes_of(h), 0, (size_t)(4 * t->lanes)); }

static inline int64_t one_chunk(struct nf_call *c, const struct tree *t) {
    (void)c;
    return t->index == 0;
}

#endif
