/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "own.h"

static void init(void *state, const struct nf_window_settings *settings) {
    struct nf_own *own = state;
    *own = (struct nf_own){.cwnd = cwnd_of(4, settings->max_cwnd)};
}

static void shrink(struct nf_own *own, double factor) {
    double size = own->cwnd.size * factor;
    own->cwnd.size = size > 1 ? size : 1;
    own->acked = own->marked = 0;
}

static void on_acks(void *state, const struct nf_ack_summary *acks) {
    struct nf_own *own = state;
    own->acked += acks->count;
    own->marked += acks->marked;
    if (own->acked < (int64_t)own->cwnd.size) return;
    if (own->marked) {
        shrink(own, 1 - (double)own->marked / (double)own->acked / 2);
    } else {
        cwnd_grow(&own->cwnd, 1);
        own->acked = 0;
    }
}

static void on_loss(void *state) { shrink(state, 0.5); }

const struct nf_congestion_ops own_ops = {init, on_acks, on_loss};
