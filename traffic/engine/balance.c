/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "balance.h"

#include <math.h>
#include <stdlib.h>

enum { SHARE_UNITS = 1 << 20, TIMES = 60 };

static int64_t lap_begin(const struct nf_balance *b, int64_t lap) { return b->rows * lap / b->laps; }

/* What each tree would get to be busy for `time` microseconds. */
static int64_t fill(const struct nf_balance *b, int64_t time, int64_t *counts) {
    int64_t all = 0;
    for (int64_t i = 0; i < b->trees; i++) {
        __int128 more = ((__int128)b->sum_speed[i] * time / 1000000 - b->sum_owed[i]) / b->workers;
        counts[i] = more > b->rows ? b->rows : more > b->least[i] ? (int64_t)more : b->least[i];
        if (!b->least[i]) counts[i] = 0;
        all += counts[i];
    }
    return all;
}

/* Whole numbers only, as all workers have to come to the same. */
static void divide(struct nf_balance *b, int64_t lap, double now) {
    int64_t counts[NF_TREES_MAX], from = lap_begin(b, lap), rows = lap_begin(b, lap + 1) - from, low = 0, high = (int64_t)1 << TIMES;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (fill(b, middle, counts) < rows)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t excess = fill(b, low, counts) - rows;
    for (int64_t i = 0; i < b->trees; i++) {
        int64_t less = counts[i] - b->least[i] < excess ? counts[i] - b->least[i] : excess;
        counts[i] -= less;
        excess -= less;
        b->run[lap][i] = (struct nf_run){from, from + counts[i]};
        from += counts[i];
        b->dealt[i] += counts[i];
        if (counts[i] && b->busy_from[i] < 0) b->busy_from[i] = now;
    }
    b->divided = lap + 1;
    b->counted = 0;
}

struct nf_balance *nf_balance_start(int64_t rows, const struct nf_assignment *a, const int64_t *channels, int *failed) {
    int64_t all = 0, carrying = 0;
    for (int64_t i = 0; i < a->tree_count; i++) {
        int carries = a->trees[i].upto > (i ? a->trees[i - 1].upto : 0);
        all += carries ? channels[i] : 0;
        carrying += carries;
        if (a->trees[i].slots == 2) return NULL; /* its one stream has no place for votes beside data */
    }
    int64_t laps = all ? rows / (NF_LAP_WINDOWS * all) : 0;
    if (laps < NF_LAPS_MIN && rows >= NF_LAPS_MIN * NF_SHORT_LAP_WINDOWS * all) laps = NF_LAPS_MIN;
    if (carrying < 2 || laps < NF_LAPS_MIN || 2 * a->tree_count > a->lanes) return NULL;
    struct nf_balance *b = calloc(1, sizeof *b);
    if (!b) {
        *failed = 1;
        return NULL;
    }
    b->trees = a->tree_count;
    b->workers = a->workers;
    b->rows = rows;
    b->laps = laps < NF_LAPS_MAX ? laps : NF_LAPS_MAX;
    for (int64_t i = 0; i < b->trees; i++) {
        double share = a->trees[i].upto - (i ? a->trees[i - 1].upto : 0);
        b->least[i] = share > 0 ? channels[i] : 0;
        b->sum_speed[i] = (int64_t)rint(share * SHARE_UNITS) * b->workers;
    }
    divide(b, 0, 0);
    return b;
}

void nf_balance_got(struct nf_balance *b, int64_t tree, double now) {
    if (!b->all_got)
        for (int64_t i = 0; i < b->trees; i++) b->busy_from[i] = now;
    b->got[tree]++;
    b->fresh[tree]++;
    b->all_got++;
    if (b->got[tree] < b->dealt[tree]) return;
    b->busy[tree] += now - b->busy_from[tree];
    b->busy_from[tree] = -1;
}

/* Early, so that the answer is here before anything is out of rows; the last rows of a lap wait for it. */
int nf_balance_due(const struct nf_balance *b) {
    int64_t lap = b->divided;
    if (lap == b->laps || b->voted == lap) return 0;
    int64_t from = lap_begin(b, lap - 1), upto = lap_begin(b, lap);
    return b->all_got >= from + (upto - from) / 4;
}

static int64_t bounded(const struct nf_balance *b, double value) {
    double most = (double)(INT32_MAX / b->workers);
    return value < most ? (int64_t)value : (int64_t)most;
}

void nf_balance_vote(struct nf_balance *b, double now) {
    for (int64_t i = 0; i < b->trees; i++) {
        double busy = b->busy[i];
        if (b->busy_from[i] >= 0) {
            busy += now - b->busy_from[i];
            b->busy_from[i] = now;
        }
        if (busy > 0) b->speed[i] = b->fresh[i] ? bounded(b, (double)b->fresh[i] / busy) : b->speed[i] / 2;
        if (b->speed[i] < 1) b->speed[i] = 1;
        b->owed[i] = bounded(b, (double)(b->dealt[i] - b->got[i]));
        b->fresh[i] = 0;
        b->busy[i] = 0;
    }
    b->voted = b->divided;
}

void nf_balance_fill(const struct nf_balance *b, uint32_t *lanes) {
    for (int64_t i = 0; i < b->trees; i++) {
        lanes[i] = __builtin_bswap32((uint32_t)b->speed[i]);
        lanes[b->trees + i] = __builtin_bswap32((uint32_t)b->owed[i]);
    }
}

void nf_balance_take(struct nf_balance *b, const uint32_t *lanes) {
    for (int64_t i = 0; i < b->trees; i++) {
        b->sum_speed[i] = (int64_t)__builtin_bswap32(lanes[i]);
        b->sum_owed[i] = (int64_t)__builtin_bswap32(lanes[b->trees + i]);
    }
    b->counted = 1;
}

void nf_balance_divide(struct nf_balance *b, double now) { divide(b, b->divided, now); }

int64_t nf_balance_follower(const struct nf_balance *b, int64_t tree, int64_t lap, int64_t row, int64_t ahead) {
    int64_t rest = row + ahead - b->run[lap][tree].last;
    if (rest < 0) return row + ahead;
    if (lap + 1 == b->divided) return -1;
    struct nf_run next = b->run[lap + 1][tree];
    return rest < next.last - next.first ? next.first + rest : -1;
}
