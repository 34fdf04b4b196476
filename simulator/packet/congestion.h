/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* TCP's windows: Reno (RFC 5681), CUBIC (RFC 9438) and DCTCP (RFC 8257), in segments and seconds. */

#ifndef NETFOLD_CONGESTION_H
#define NETFOLD_CONGESTION_H

#include <stdint.h>

enum np_transport { NP_RENO, NP_CUBIC, NP_DCTCP, NP_CUBIC_ECN };

/* Whether a sender's packets may be marked in place of being lost. */
static inline int np_capable(int transport) { return transport >= NP_DCTCP; }

struct np_cwnd {
    int transport;
    double size, threshold;
    double peak, epoch, rise, estimate, k; /* CUBIC: W_max, the stage's begin (-1: none), cwnd_epoch, W_est and K */
    double alpha;                          /* DCTCP */
    int64_t acked, echoed;                 /* segments, in the window that `mark` ends */
    uint32_t mark, reduced_until;
    int reduced;
};

void np_cwnd_start(struct np_cwnd *w, int transport, double initial);
/* `segments` are acknowledged; grows unless it may not (recovery, or lately reduced). */
void np_cwnd_grow(struct np_cwnd *w, int64_t segments, double now, double rtt);
/* Before growth; `echo`: the acknowledgment says that they met congestion. */
void np_cwnd_echo(struct np_cwnd *w, int64_t segments, int echo, uint32_t acknowledged, uint32_t next);
/* Segments are lost; the new threshold. */
void np_cwnd_loss(struct np_cwnd *w, double under_way);
void np_cwnd_timeout(struct np_cwnd *w, double under_way);

#endif
