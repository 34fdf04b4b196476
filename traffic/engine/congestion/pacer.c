/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "pacer.h"

enum { BURST_PACKETS = 16, MIN_BURST = 4 };

static double min_of(double a, double b) { return a < b ? a : b; }
static double max_of(double a, double b) { return a > b ? a : b; }

void nf_pacer_init(struct nf_pacer *p, double rate_mbps, double wire_bytes, double share, double burst, double now) {
    p->rate = share * rate_mbps * 1e6 / (8 * wire_bytes);
    p->depth = max_of(max_of(MIN_BURST, share * BURST_PACKETS), p->rate * burst);
    p->up = p->down = p->depth;
    p->filled_at = now;
}

void nf_pacer_fill(struct nf_pacer *p, double now) {
    double more = (now - p->filled_at) * p->rate;
    p->up = min_of(p->depth, p->up + more);
    p->down = min_of(p->depth, p->down + more);
    p->filled_at = now;
}

double nf_pacer_wait(const struct nf_pacer *p) {
    return p->rate == 0 ? 0 : max_of(0, (p->depth / 4 - min_of(p->up, p->down)) / p->rate);
}
