/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The core's reports of itself and of its trees. */

#ifndef NETFOLD_REPORT_H
#define NETFOLD_REPORT_H

#include <stdint.h>

struct nf_totals {
    int64_t retransmits, restarts, reencoded_chunks;
    int64_t probes; /* retransmissions after silence; most silence is another worker's */
    int64_t pending; /* calls that are not finished */
    int64_t unusable_epoch; /* the epoch in which no call can continue: another one is needed. 0: none */
    int64_t has_failed_call; /* a call failed in this epoch */
    int64_t must_serve_handover; /* other workers may need this one, though it has no call */
    int64_t late_contributions; /* of this worker: their sums had been sealed */
    int64_t next_call; /* number in the job of the first call that is not finished, */
    int64_t has_call; /* whether it was submitted; then also the next ones */
    int64_t call_kind, call_bytes; /* enum nf_kind */
    double call_submitted;
};

struct nf_tree_report {
    int64_t tree, window, max_window, retransmits, probes;
    int64_t results, marked; /* received in the epoch, and those with an ECN mark */
    int64_t open_slot; /* 1 + the slot of the chunk that has been in flight for longest; 0: none is */
    double srtt, min_rtt;
};

#endif
