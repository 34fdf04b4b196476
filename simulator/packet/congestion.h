/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* TCP's windows: Reno (RFC 5681), CUBIC (RFC 9438) and DCTCP (RFC 8257), in segments and seconds. */

#ifndef NETFOLD_CONGESTION_H
#define NETFOLD_CONGESTION_H

#include <stdint.h>

enum np_transport { NP_RENO, NP_CUBIC, NP_DCTCP, NP_CUBIC_ECN };

/* Returns whether packets of the sender are ECN-capable. */
static inline int np_uses_ecn(int transport) { return transport >= NP_DCTCP; }

struct np_cwnd {
    int transport;
    double size, threshold;
    double peak, epoch, rise, estimate, k; /* CUBIC: W_max, start of the stage (-1: none), cwnd_epoch, W_est and K */
    double alpha;                          /* DCTCP */
    int64_t acked, echoed;                 /* segments, in the window that ends with segment `mark` */
    uint32_t mark, reduced_until;
    int reduced;
};

void np_cwnd_init(struct np_cwnd *w, int transport, double initial);
/* Grows the window: `segments` are acknowledged. Do not call it in recovery, or after a reduction. */
void np_cwnd_grow(struct np_cwnd *w, int64_t segments, double now, double rtt);
/* Takes the echo of marks; call it before the window grows. `echo`: the acknowledgment has ECE. */
void np_cwnd_on_echo(struct np_cwnd *w, int64_t segments, int echo, uint32_t on_ack, uint32_t next);
/* Sets the new threshold after a loss of segments. */
void np_cwnd_on_loss(struct np_cwnd *w, double in_flight);
void np_cwnd_on_timeout(struct np_cwnd *w, double in_flight);

#endif
