/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The slots of a node are the engine's slot pool; the node counts what happens in it. */

#ifndef NETFOLD_NODE_SLOTS_H
#define NETFOLD_NODE_SLOTS_H

#include "../../traffic/engine/server/slot_pool.h"
#include "events.h"

struct np_node_slots {
    struct nf_slot_pool pool;
    uint8_t *is_open;             /* by slot: it has contributions, and its sum is not complete */
    int64_t open_count, max_open;
    np_time measured_until;
    double open_area; /* open slots times picoseconds, up to `measured_until` */
    int64_t verdicts[NF_VERDICTS];
};

/* Returns -1 if there is no memory. */
int np_node_slots_init(struct np_node_slots *n, enum nf_role role, int64_t slots, int64_t lanes, int64_t children);
void np_node_slots_free(struct np_node_slots *n);

/* Calls nf_slot_pool_accumulate and counts the result. */
enum nf_verdict np_node_slots_accumulate(struct np_node_slots *n, int64_t child, const struct header *h, int marked,
                                         struct header *result, np_time now);

#endif
