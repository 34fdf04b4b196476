/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* How the rows of a large call are dealt out to trees while it goes: docs/protocol.md, section 5.3. They are cut into laps. The
 * first is divided by the plan's shares; for each further one the workers vote how quick the trees are and how much they still
 * owe, and what came back is divided so that all trees would end at the same time. All see the same sums, so all divide
 * alike. No I/O, no clock. */

#ifndef NETFOLD_BALANCE_H
#define NETFOLD_BALANCE_H

#include "core.h"

enum {
    NF_LAPS_MIN = 3,
    NF_LAPS_MAX = 16,
    NF_LAP_WINDOWS = 4,       /* a lap has so many rows for each channel of all trees at least, */
    NF_SHORT_LAP_WINDOWS = 2, /* and in a call that has NF_LAPS_MIN laps so many */
};

/* A tree's rows of a lap. */
struct nf_run {
    int64_t first, last; /* one more than the last row */
};

struct nf_balance {
    int64_t trees, workers, rows, laps;
    int64_t divided; /* laps that are */
    int64_t voted;   /* votes that this worker has given: for laps 1 ... */
    int64_t least[NF_TREES_MAX]; /* rows of each lap, so that each has one for each channel; 0: the plan gives it nothing */
    struct nf_run run[NF_LAPS_MAX][NF_TREES_MAX];
    int64_t dealt[NF_TREES_MAX], got[NF_TREES_MAX], all_got;
    /* since the last vote: how long each tree owed rows, since when (negative: it owes none), and how many came */
    double busy[NF_TREES_MAX], busy_from[NF_TREES_MAX];
    int64_t fresh[NF_TREES_MAX];
    /* by tree: rows a second, and rows still owed; of this worker, and the sums of all */
    int64_t speed[NF_TREES_MAX], owed[NF_TREES_MAX];
    int64_t sum_speed[NF_TREES_MAX], sum_owed[NF_TREES_MAX];
    int counted; /* the sums are here, and not used yet */
};

/* NULL: the call is too small to be balanced, or (with `failed` set) there is no memory. `channels` of each tree that may carry
 * its data, `upto` as in nf_tree_spec. */
struct nf_balance *nf_balance_start(int64_t rows, const struct nf_assignment *a, const int64_t *channels, int *failed);

/* A row of a tree is here. */
void nf_balance_got(struct nf_balance *b, int64_t tree, double now);

/* Whether it is time to vote on the next lap; what this worker says. */
int nf_balance_due(const struct nf_balance *b);
void nf_balance_vote(struct nf_balance *b, double now);

/* The lanes of a vote, the trees' speeds and then what they owe: of this worker, and their sums. */
void nf_balance_fill(const struct nf_balance *b, uint32_t *lanes);
void nf_balance_take(struct nf_balance *b, const uint32_t *lanes);

/* Divides the next lap by the sums, `sum_speed` and `sum_owed`. */
void nf_balance_divide(struct nf_balance *b, double now);

/* The row that follows so many rows behind `row` of a lap in its tree; -1: none does. */
int64_t nf_balance_follower(const struct nf_balance *b, int64_t tree, int64_t lap, int64_t row, int64_t ahead);

#endif
