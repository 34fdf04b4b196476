/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "atp.h"

enum { MAX_CWND = 100, INITIAL_CWND = 16 };

static void init(void *state, const struct nf_window_settings *settings) {
    struct nf_atp *a = state;
    int64_t max = settings->max_cwnd < MAX_CWND ? settings->max_cwnd : MAX_CWND;
    *a = (struct nf_atp){.cwnd = cwnd_of(INITIAL_CWND, max)};
}

static void halve(struct nf_atp *a) {
    double half = (double)((int64_t)a->cwnd.size / 2);
    a->cwnd.size = half > 1 ? half : 1;
    a->acked = a->marked = 0;
}

static void on_acks(void *state, const struct nf_ack_summary *acks) {
    struct nf_atp *a = state;
    a->acked += acks->count;
    a->marked += acks->marked;
    if (a->acked < (int64_t)a->cwnd.size) return;
    if (a->marked) {
        halve(a);
        return;
    }
    cwnd_grow(&a->cwnd, 1);
    a->acked = 0;
}

static void on_loss(void *state) { halve(state); }

const struct nf_congestion_ops atp_ops = {init, on_acks, on_loss};
