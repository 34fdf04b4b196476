/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "atp.h"

static void halve(struct nf_window *w) {
    double half = (double)((int64_t)w->cwnd / 2);
    w->cwnd = half > 1 ? half : 1;
}

void atp_on_acks(struct nf_window *w, const struct nf_ack_summary *acks) {
    w->acked += acks->count;
    w->marked += acks->marked;
    if (w->acked < (int64_t)w->cwnd) return;
    if (w->marked)
        halve(w);
    else
        window_grow(w, 1);
    window_reset_counts(w);
}

void atp_on_loss(struct nf_window *w) {
    halve(w);
    window_reset_counts(w);
}
