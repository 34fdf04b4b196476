/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "balance.h"

#include <math.h>
#include <stdlib.h>

enum { SHARE_UNITS = 1 << 20, MAX_TIME_BITS = 60 };

static int64_t stripe_begin(const struct nf_balance *b, int64_t stripe) { return b->rows * stripe / b->stripes; }

/* Computes by tree the rows that keep it busy for `time` microseconds; returns their sum. */
static int64_t rows_for_time(const struct nf_balance *b, int64_t time, int64_t *counts) {
    int64_t all = 0;
    for (int64_t i = 0; i < b->trees; i++) {
        __int128 more = ((__int128)b->sum_speed[i] * time / 1000000 - b->sum_owed[i]) / b->workers;
        counts[i] = more > b->rows ? b->rows : more > b->min_rows[i] ? (int64_t)more : b->min_rows[i];
        if (!b->min_rows[i]) counts[i] = 0;
        all += counts[i];
    }
    return all;
}

/* This computes in integers only, because all workers have to get the same result. */
static void assign_stripe(struct nf_balance *b, int64_t stripe, double now) {
    int64_t counts[NF_TREES_MAX], from = stripe_begin(b, stripe), rows = stripe_begin(b, stripe + 1) - from, low = 0,
                                  high = (int64_t)1 << MAX_TIME_BITS;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (rows_for_time(b, middle, counts) < rows)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t excess = rows_for_time(b, low, counts) - rows;
    for (int64_t i = 0; i < b->trees; i++) {
        int64_t less = counts[i] - b->min_rows[i] < excess ? counts[i] - b->min_rows[i] : excess;
        counts[i] -= less;
        excess -= less;
        b->run[stripe][i] = (struct nf_run){from, from + counts[i]};
        from += counts[i];
        b->assigned[i] += counts[i];
        if (counts[i] && b->busy_since[i] < 0) b->busy_since[i] = now;
    }
    b->assigned_stripes = stripe + 1;
    b->has_reports = 0;
}

struct nf_balance *nf_balance_create(int64_t rows, const struct nf_assignment *a, const int64_t *channels, int *failed) {
    int64_t all = 0, carrying = 0;
    for (int64_t i = 0; i < a->tree_count; i++) {
        int carries = a->trees[i].cumulative_share > (i ? a->trees[i - 1].cumulative_share : 0);
        all += carries ? channels[i] : 0;
        carrying += carries;
        if (a->trees[i].slots == 2) return NULL; /* one stream cannot carry both reports and data */
    }
    int64_t stripes = all ? rows / (NF_STRIPE_WINDOWS * all) : 0;
    if (stripes < NF_MIN_STRIPES && rows >= NF_MIN_STRIPES * NF_SHORT_STRIPE_WINDOWS * all) stripes = NF_MIN_STRIPES;
    if (carrying < 2 || stripes < NF_MIN_STRIPES || 2 * a->tree_count > a->lanes) return NULL;
    struct nf_balance *b = calloc(1, sizeof *b);
    if (!b) {
        *failed = 1;
        return NULL;
    }
    b->trees = a->tree_count;
    b->workers = a->workers;
    b->rows = rows;
    b->stripes = stripes < NF_MAX_STRIPES ? stripes : NF_MAX_STRIPES;
    for (int64_t i = 0; i < b->trees; i++) {
        double share = a->trees[i].cumulative_share - (i ? a->trees[i - 1].cumulative_share : 0);
        b->min_rows[i] = share > 0 ? channels[i] : 0;
        b->sum_speed[i] = (int64_t)rint(share * SHARE_UNITS) * b->workers;
    }
    assign_stripe(b, 0, 0);
    return b;
}

void nf_balance_on_row(struct nf_balance *b, int64_t tree, double now) {
    if (!b->all_received)
        for (int64_t i = 0; i < b->trees; i++) b->busy_since[i] = now;
    b->received[tree]++;
    b->fresh[tree]++;
    b->all_received++;
    if (b->received[tree] < b->assigned[tree]) return;
    b->busy[tree] += now - b->busy_since[tree];
    b->busy_since[tree] = -1;
}

/* A report is due early, so that the reports are known before a tree runs out of rows; the last rows of a stripe wait for
 * them. */
int nf_balance_report_due(const struct nf_balance *b) {
    int64_t stripe = b->assigned_stripes;
    if (stripe == b->stripes || b->reported == stripe) return 0;
    int64_t from = stripe_begin(b, stripe - 1), end = stripe_begin(b, stripe);
    return b->all_received >= from + (end - from) / 4;
}

static int64_t bounded(const struct nf_balance *b, double value) {
    double limit = (double)(INT32_MAX / b->workers);
    return value < limit ? (int64_t)value : (int64_t)limit;
}

void nf_balance_report(struct nf_balance *b, double now) {
    for (int64_t i = 0; i < b->trees; i++) {
        double busy = b->busy[i];
        if (b->busy_since[i] >= 0) {
            busy += now - b->busy_since[i];
            b->busy_since[i] = now;
        }
        if (busy > 0) b->speed[i] = b->fresh[i] ? bounded(b, (double)b->fresh[i] / busy) : b->speed[i] / 2;
        if (b->speed[i] < 1) b->speed[i] = 1;
        b->owed[i] = bounded(b, (double)(b->assigned[i] - b->received[i]));
        b->fresh[i] = 0;
        b->busy[i] = 0;
    }
    b->reported = b->assigned_stripes;
}

void nf_balance_write_report(const struct nf_balance *b, uint32_t *lanes) {
    for (int64_t i = 0; i < b->trees; i++) {
        lanes[i] = __builtin_bswap32((uint32_t)b->speed[i]);
        lanes[b->trees + i] = __builtin_bswap32((uint32_t)b->owed[i]);
    }
}

void nf_balance_take_reports(struct nf_balance *b, const uint32_t *lanes) {
    for (int64_t i = 0; i < b->trees; i++) {
        b->sum_speed[i] = (int64_t)__builtin_bswap32(lanes[i]);
        b->sum_owed[i] = (int64_t)__builtin_bswap32(lanes[b->trees + i]);
    }
    b->has_reports = 1;
}

void nf_balance_assign_stripe(struct nf_balance *b, double now) { assign_stripe(b, b->assigned_stripes, now); }

int64_t nf_balance_next_row(const struct nf_balance *b, int64_t tree, int64_t stripe, int64_t row, int64_t ahead) {
    int64_t rest = row + ahead - b->run[stripe][tree].last;
    if (rest < 0) return row + ahead;
    if (stripe + 1 == b->assigned_stripes) return -1;
    struct nf_run next = b->run[stripe + 1][tree];
    return rest < next.last - next.first ? next.first + rest : -1;
}
