/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Pacing: token buckets in packets a second, one for each direction of a worker's link. A packet with all lanes costs 1. */

#ifndef NETFOLD_PACER_H
#define NETFOLD_PACER_H

#include <stdint.h>

struct nf_pacer {
    double rate; /* packets a second; 0: no limit */
    double depth, up, down, filled_at;
};

/* Starts with full buckets. Their rate is `share` of `rate_mbps`; their depth is `burst` seconds at that rate, or a few
 * packets. */
void nf_pacer_init(struct nf_pacer *p, double rate_mbps, double wire_bytes, double share, double burst, double now);

void nf_pacer_fill(struct nf_pacer *p, double now);

/* Returns whether a packet may be sent now. */
static inline int nf_pacer_allows(const struct nf_pacer *p) { return p->rate == 0 || (p->up >= 1 && p->down >= 1); }

/* Returns whether the way down has at least as many tokens as the way up. */
static inline int nf_pacer_has_more_down(const struct nf_pacer *p) { return p->rate == 0 || p->down >= p->up; }

/* Takes the tokens of a packet, and of its result. */
static inline void nf_pacer_charge(struct nf_pacer *p, double up, double down) {
    p->up -= up;
    p->down -= down;
}

/* Returns the seconds until a quarter of the depth may be sent. */
double nf_pacer_wait(const struct nf_pacer *p);

#endif
