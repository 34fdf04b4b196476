/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rates by weighted max-min. A flow at rate x uses coef * x of each link in its row; a tree, or a ring in step, is one
 * flow over all its links. No link is used above its capacity, and every flow is at its cap or has a bottleneck: a full
 * link on which nobody has a greater rate for its weight. These two make the rates unique (Bertsekas & Gallager, Data
 * Networks, 6.5.2), and they are checked locally: when flows come and go, only those are solved anew for whom one of
 * them would fail. */
#ifndef NF_SHARES_H
#define NF_SHARES_H

#include <stdint.h>

enum { NF_NOWHERE = -1, NF_AT_CAP = -2 };

struct nf_entry {
    int32_t link, place; /* place among the link's members, while the flow is active */
    double coef;
};

struct nf_member {
    int32_t flow;
    int64_t entry;
    double coef;
};

struct nf_link {
    /* While solving: load of those that keep their rates; what is left, for chosen flows that have no rate yet: how much
     * of it a level takes, the most that they could have of it, how many they are. */
    double capacity, fixed, residual, weights, wanted;
    double most, held; /* levels of the chosen: the greatest; of those that are held up here */
    int32_t open;
    uint32_t touched;
    double load;
    struct nf_member *members;
    int32_t count, room;
    int32_t holds; /* flows that are held up here, without the chosen ones */
};

struct nf_flow {
    int64_t first, last; /* its row: entries first ... last - 1 */
    double weight, cap, rate, next; /* next: the rate that it gets */
    double most;                    /* while solving: what the emptiest link on its way, or its cap, leaves it alone */
    int32_t bottleneck;
    uint32_t chosen;
    uint8_t active, settled;
};

struct nf_key {
    double level;
    int32_t id; /* of a link, or ~ of a flow that reaches its cap */
};

struct nf_shares {
    struct nf_link *links;
    struct nf_flow *flows;
    struct nf_entry *entries;
    int32_t link_count, flow_count;
    double tolerance;
    uint32_t round;
    int32_t *chosen, chosen_count; /* flows that are solved anew; all that a rate may have changed of */
    int32_t *touched, touched_count; /* their links, and those of who left */
    struct nf_key *heap;
    int64_t heap_count;
};

/* 0, or -1 without memory. Rows, weights and caps are the caller's to fill in before a flow is added. */
int nf_shares_open(struct nf_shares *s, int32_t links, int32_t flows, int64_t entries);
void nf_shares_close(struct nf_shares *s);

/* Between nf_shares_begin and nf_shares_solve flows come and go. Solve leaves new rates in `next` of the chosen flows;
 * nf_shares_commit makes them hold. -1 without memory. */
void nf_shares_begin(struct nf_shares *s);
int nf_shares_add(struct nf_shares *s, int32_t flow);
void nf_shares_remove(struct nf_shares *s, int32_t flow);
void nf_shares_solve(struct nf_shares *s);
void nf_shares_commit(struct nf_shares *s);

#endif
