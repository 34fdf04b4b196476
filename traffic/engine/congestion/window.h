/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The congestion window of a tree follows one of the algorithms. One result acknowledges one chunk of every worker, so the
 * windows of a job move together. */

#ifndef NETFOLD_WINDOW_H
#define NETFOLD_WINDOW_H

#include "../wire/export.h"
#include "atp.h"
#include "panama.h"

enum nf_congestion { NF_FIXED, NF_ATP, NF_PANAMA };

union nf_window_state {
    struct nf_cwnd cwnd; /* the whole state of a fixed window, and the beginning of the others */
    struct nf_atp atp;
    struct nf_panama panama;
};

struct nf_window {
    const struct nf_congestion_ops *ops;
    union nf_window_state state;
};

/* Returns the increase of cwnd a window, in chunks: trees that share a link grow together as one TCP connection does. */
NF_API double nf_window_increase(double wire_bytes, double share);

NF_API void nf_window_init(struct nf_window *w, enum nf_congestion algorithm, const struct nf_window_settings *settings);
NF_API int64_t nf_window_cwnd(const struct nf_window *w);
NF_API void nf_window_on_acks(struct nf_window *w, const struct nf_ack_summary *acks);

/* A chunk was lost. Call this at most once an RTT. */
NF_API void nf_window_on_loss(struct nf_window *w);

#endif
