/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "window.h"

#include "atp.h"
#include "panama.h"

/* Growth in frames of 1514 bytes: TCP's one, and a quarter, as a mark of one contribution is a mark of all. */
static const double INCREASE_FRAMES = 1.25;

double nf_window_increase(double wire_bytes, double share) { return INCREASE_FRAMES * 1514 / wire_bytes * share; }

void nf_window_init(struct nf_window *w, enum nf_congestion algorithm, int64_t max_cwnd, double delay_threshold,
                    double increase) {
    *w = (struct nf_window){.algorithm = algorithm,
                            .max_cwnd = max_cwnd,
                            .alpha = 1,
                            .delay_threshold = delay_threshold,
                            .increase = increase,
                            .min_delay = NF_UNKNOWN,
                            .marking_delay = NF_UNKNOWN,
                            .in_slow_start = 1};
    if (algorithm == NF_ATP && max_cwnd > ATP_MAX_CWND) w->max_cwnd = ATP_MAX_CWND;
    int64_t initial = algorithm == NF_FIXED ? max_cwnd : algorithm == NF_ATP ? ATP_INITIAL_CWND : PANAMA_INITIAL_CWND;
    w->cwnd = (double)(initial < w->max_cwnd ? initial : w->max_cwnd);
}

int64_t nf_window_cwnd(const struct nf_window *w) { return (int64_t)w->cwnd; }

void nf_window_on_acks(struct nf_window *w, const struct nf_ack_summary *acks) {
    if (w->algorithm == NF_PANAMA) panama_on_acks(w, acks);
    if (w->algorithm == NF_ATP) atp_on_acks(w, acks);
}

void nf_window_on_loss(struct nf_window *w) {
    if (w->algorithm == NF_PANAMA) panama_on_loss(w);
    if (w->algorithm == NF_ATP) atp_on_loss(w);
}
