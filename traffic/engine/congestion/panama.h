/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* PANAMA's window (MLSys 2021) with DCTCP's constants (RFC 8257), delay as the signal where nothing marks (RFC 6817), and the
 * rules of docs/decisions/0024 for links shared with TCP. */

#ifndef NETFOLD_PANAMA_H
#define NETFOLD_PANAMA_H

#include "algorithm.h"

struct nf_panama {
    struct nf_cwnd cwnd;
    double alpha;
    double delay_threshold, increase; /* nf_window_settings */
    int64_t acked, marked; /* results of this window, and those with an ECN mark */
    double min_delay; /* smallest queueing delay of this window; NF_UNKNOWN: none is known */
    double min_rtt; /* smallest RTT of the epoch */
    double peak_rtt, trough_rtt; /* largest RTT of the last marked windows, and the smallest since */
    double peer_backoff; /* part by which RTTs fell after the last marks */
    double marking_delay; /* smallest delay at which all results were marked */
    int64_t deep_windows; /* in a row, all of whose results met a deep queue */
    double cwnd_before_deep, contended_cwnd; /* size before these; size when it contended last, decaying */
    int64_t contending_windows; /* left in which it contends with senders that fill the queue */
    int in_slow_start, saw_marks, was_marked; /* `was_marked`: in the last window */
};

extern const struct nf_congestion_ops panama_ops;

#endif
