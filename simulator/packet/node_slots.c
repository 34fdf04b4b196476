/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "node_slots.h"

#include <stdlib.h>

int np_node_slots_init(struct np_node_slots *n, enum nf_role role, int64_t slots, int64_t lanes, int64_t children) {
    n->is_open = calloc((size_t)slots, 1);
    return nf_slot_pool_init(&n->pool, role, slots, lanes, children) || !n->is_open ? -1 : 0;
}

void np_node_slots_free(struct np_node_slots *n) {
    nf_slot_pool_free(&n->pool);
    free(n->is_open);
}

static void set_open(struct np_node_slots *n, int64_t slot, uint8_t is_open) {
    n->open_count += is_open - n->is_open[slot];
    n->is_open[slot] = is_open;
    if (n->open_count > n->max_open) n->max_open = n->open_count;
}

enum nf_verdict np_node_slots_accumulate(struct np_node_slots *n, int64_t child, const struct header *h, int marked,
                                         struct header *result, np_time now) {
    n->open_area += (double)n->open_count * (double)(now - n->measured_until);
    n->measured_until = now;
    int64_t slot = __builtin_bswap16(h->slot);
    enum nf_verdict verdict = nf_slot_pool_accumulate(&n->pool, child, h, marked, result);
    n->verdicts[verdict]++;
    if (verdict == NF_ACCUMULATED || verdict == NF_RESULT_SENT || verdict == NF_SUM_SENT) set_open(n, slot, 1);
    if (verdict == NF_RESULT_SENT || verdict == NF_SUM_SENT) set_open(n, slot, 0);
    return verdict;
}
