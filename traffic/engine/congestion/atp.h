/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The window of ATP (NSDI 2021): a mark or a loss halves it, a window of results without marks adds one chunk. */

#ifndef NETFOLD_ATP_H
#define NETFOLD_ATP_H

#include "algorithm.h"

struct nf_atp {
    struct nf_cwnd cwnd;
    int64_t acked, marked; /* results of this window, and those with an ECN mark */
};

extern const struct nf_congestion_ops atp_ops;

#endif
