/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A worker's part of one epoch, as the controller assigns it. */

#ifndef NETFOLD_ASSIGNMENT_H
#define NETFOLD_ASSIGNMENT_H

#include <stdint.h>

#include "../congestion/rtt.h"

enum { NF_TREES_MAX = 64 };

struct nf_tree_spec {
    int64_t tree, child, slots, window;
    int64_t endpoint; /* index of the socket of this tree */
    double share;     /* of the paced rate */
    double cumulative_share; /* of the gradient: the shares up to this tree's, its own included */
    char destination[16];
};

/* Workers that have left the job, docs/reference/protocol.md, section 5.7. All members are 0 if there are none. */
struct nf_departures {
    int64_t is_limited; /* calls from `call_limit` on are not completed in this epoch */
    int64_t call_limit;
    int64_t in_epoch; /* some of them take part in this epoch: they hand over no further result */
    int64_t is_final; /* calls from `call_limit` on are not completed in a later epoch either */
};

/* Which packets of an epoch may be targeted, docs/reference/protocol.md, section 5.8. NF_TARGETS_PAUSED: none, but other epochs
 * of the job may have scatters. */
enum nf_targets { NF_NO_TARGETS, NF_TARGETS_PAUSED, NF_TARGETS };

struct nf_assignment {
    int64_t epoch, lanes, workers;
    int64_t rank; /* of this worker, 0 ... workers - 1 */
    int64_t nonce; /* of this process, random, 0 ... 2^30 - 1: docs/reference/protocol.md, E8 */
    int64_t rounds; /* how often a slot can be used in an epoch */
    int64_t congestion; /* enum nf_congestion */
    int64_t wire_bytes, tree_count;
    int64_t
        quorum; /* contributions that suffice after the deadline, docs/reference/protocol.md, section 3.7; 0: all are required */
    int64_t targets; /* enum nf_targets */
    int64_t allow_newcomers; /* the epoch may have workers without call state, section 5.6 */
    double rate_mbps;
    double quorum_deadline; /* how long a chunk waits for all contributions, seconds */
    struct nf_timing timing;
    struct nf_departures departures;
    struct nf_tree_spec trees[NF_TREES_MAX];
};

#endif
