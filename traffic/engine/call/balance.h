/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Striping: how the rows of a large call are divided over trees while it is in progress, docs/reference/protocol.md, section 5.3. The
 * rows are cut into stripes. The first is divided by the plan's shares; for each further one the workers report how fast the
 * trees are and how many rows they still have to return, and the sums of the reports divide it so that all trees would finish
 * at the same time. All workers receive the same sums, so all divide alike. */

#ifndef NETFOLD_BALANCE_H
#define NETFOLD_BALANCE_H

#include "../transport/assignment.h"

enum {
    NF_MIN_STRIPES = 3,
    NF_MAX_STRIPES = 16,
    NF_STRIPE_WINDOWS = 4, /* rows of a stripe for each channel of all trees, at least, */
    NF_SHORT_STRIPE_WINDOWS = 2, /* and in a call with NF_MIN_STRIPES stripes */
};

/* The rows of a tree in a stripe. */
struct nf_run {
    int64_t first, last; /* one more than the last row */
};

struct nf_balance {
    int64_t trees, workers, rows, stripes;
    int64_t assigned_stripes;
    int64_t reported; /* reports that this worker has sent: for stripes 1 ... */
    int64_t min_rows[NF_TREES_MAX]; /* of each stripe: one for each channel; 0: the plan gives the tree nothing */
    struct nf_run run[NF_MAX_STRIPES][NF_TREES_MAX];
    int64_t assigned[NF_TREES_MAX], received[NF_TREES_MAX], all_received;
    /* Since the last report each tree had rows to return for `busy` seconds and returned `fresh` rows; `busy_since` is negative
     * while it has none. */
    double busy[NF_TREES_MAX], busy_since[NF_TREES_MAX];
    int64_t fresh[NF_TREES_MAX];
    /* This worker reports by tree rows a second and rows to return; the sums are over all workers. */
    int64_t speed[NF_TREES_MAX], owed[NF_TREES_MAX];
    int64_t sum_speed[NF_TREES_MAX], sum_owed[NF_TREES_MAX];
    int has_reports; /* the sums are known and not used yet */
};

/* Creates the stripes of a call. `channels`: of each tree, those that may carry data. Returns NULL if the call is too small for
 * stripes, or (with `failed` set) if there is no memory. */
struct nf_balance *nf_balance_create(int64_t rows, const struct nf_assignment *a, const int64_t *channels, int *failed);

/* A tree returned a row. */
void nf_balance_on_row(struct nf_balance *b, int64_t tree, double now);

/* Returns whether this worker has to report for the next stripe; makes the report. */
int nf_balance_report_due(const struct nf_balance *b);
void nf_balance_report(struct nf_balance *b, double now);

/* Writes the lanes of this worker's report, the trees' speeds and then their rows to return; reads the sums of all reports. */
void nf_balance_write_report(const struct nf_balance *b, uint32_t *lanes);
void nf_balance_take_reports(struct nf_balance *b, const uint32_t *lanes);

/* Divides the next stripe by the sums. */
void nf_balance_assign_stripe(struct nf_balance *b, double now);

/* Returns the row that follows `row` of a stripe by `ahead` rows in its tree, or -1 if there is none. */
int64_t nf_balance_next_row(const struct nf_balance *b, int64_t tree, int64_t stripe, int64_t row, int64_t ahead);

#endif
