/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "pacer.h"

enum { BURST_PACKETS = 16, MIN_BURST = 4 };

static double min_of(double a, double b) { return a < b ? a : b; }
static double max_of(double a, double b) { return a > b ? a : b; }

void nf_pacer_init(struct nf_pacer *p, double rate_mbps, double wire_bytes, double share, double burst, double now) {
    p->rate = share * rate_mbps * 1e6 / (8 * wire_bytes);
    p->depth = max_of(max_of(MIN_BURST, share * BURST_PACKETS), p->rate * burst);
    p->tokens = p->depth;
    p->filled_at = now;
}

int64_t nf_pacer_allowance(struct nf_pacer *p, double now) {
    if (p->rate == 0) return INT64_MAX;
    p->tokens = min_of(p->depth, p->tokens + (now - p->filled_at) * p->rate);
    p->filled_at = now;
    return p->tokens > 0 ? (int64_t)p->tokens : 0;
}

double nf_pacer_wait(const struct nf_pacer *p) { return p->rate == 0 ? 0 : max_of(0, (p->depth / 4 - p->tokens) / p->rate); }
