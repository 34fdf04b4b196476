/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Pacing: a token bucket in packets a second. */

#ifndef NETFOLD_PACER_H
#define NETFOLD_PACER_H

#include <stdint.h>

struct nf_pacer {
    double rate; /* packets a second; 0: no limit */
    double depth, tokens, filled_at;
};

/* Starts with a full bucket. Its rate is `share` of `rate_mbps`; its depth is `burst` seconds at that rate, or a few
 * packets. */
void nf_pacer_init(struct nf_pacer *p, double rate_mbps, double wire_bytes, double share, double burst, double now);

/* Returns the number of packets that may be sent now. */
int64_t nf_pacer_allowance(struct nf_pacer *p, double now);

/* Returns the seconds until a quarter of the depth may be sent. */
double nf_pacer_wait(const struct nf_pacer *p);

#endif
