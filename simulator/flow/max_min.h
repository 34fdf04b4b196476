/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Weighted max-min rates. A flow at rate x uses coef * x of each link in its row; a tree, or a ring in lockstep, is one
 * flow over all its links. No link is used above its capacity, and every flow is at its cap or has a bottleneck: a full
 * link on which no flow has a higher rate per weight. These two conditions make the rates unique (Bertsekas & Gallager,
 * Data Networks, 6.5.2) and can be checked locally: when flows are added or removed, only flows that would violate one of
 * them are solved again. */
#ifndef SF_MAX_MIN_H
#define SF_MAX_MIN_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { SF_NO_BOTTLENECK = -1, SF_AT_CAP = -2 };

struct sf_entry {
    int32_t link, place; /* place among the link's members, while the flow is active */
    double coef;
};

struct sf_member {
    int32_t flow;
    int64_t entry;
    double coef;
};

struct sf_link {
    /* These hold while rates are solved. fixed: load of the flows that keep their rates; residual: the capacity left for chosen
     * flows without a rate; weights: how much of it a level uses; wanted: the most that those flows could use; open: their
     * number. */
    double capacity, fixed, residual, weights, wanted;
    double max_level, held_level; /* of the chosen flows: the highest; of those with their bottleneck here */
    int32_t open;
    uint32_t touched_in;
    double load;
    struct sf_member *members;
    int32_t count, room;
    int32_t held_count; /* flows with their bottleneck here, without the chosen ones */
};

struct sf_flow {
    int64_t first, last;            /* its row: entries first ... last - 1 */
    double weight, cap, rate, next; /* next: the rate after the commit */
    double max_rate;                /* while solving: by the emptiest link of its row, or its cap */
    int32_t bottleneck;
    uint32_t chosen_in;
    uint8_t is_active, is_settled;
};

struct sf_level {
    double level;
    int32_t id; /* of a link, or ~ of a flow that reaches its cap */
};

struct sf_max_min {
    struct sf_link *links;
    struct sf_flow *flows;
    struct sf_entry *entries;
    int32_t link_count, flow_count;
    double tolerance;
    uint32_t round;
    int32_t *chosen, chosen_count;   /* flows that are solved again: all whose rate may change */
    int32_t *touched, touched_count; /* their links, and those of removed flows */
    struct sf_level *heap;
    int64_t heap_count;
};

/* Returns 0, or -1 if memory is exhausted. The caller sets capacities, rows, weights and caps before it adds a flow. */
int sf_max_min_open(struct sf_max_min *m, int32_t links, int32_t flows, int64_t entries);
void sf_max_min_close(struct sf_max_min *m);

/* Flows are added and removed between begin and solve. Solve writes new rates to `next` of the chosen flows; commit makes
 * them current. Add returns -1 if memory is exhausted. */
void sf_max_min_begin(struct sf_max_min *m);
int sf_max_min_add(struct sf_max_min *m, int32_t flow);
void sf_max_min_remove(struct sf_max_min *m, int32_t flow);
void sf_max_min_solve(struct sf_max_min *m);
void sf_max_min_commit(struct sf_max_min *m);

#pragma GCC visibility pop

#endif
