/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Round-trip times and the retransmission timeout (RFC 6298) of a tree. Times are seconds. */

#ifndef NETFOLD_RTT_H
#define NETFOLD_RTT_H

#include <stdint.h>

#include "../wire/export.h"

#define NF_UNKNOWN 1e300 /* a time or delay that is not known, or never */

/* Properties of the fabric and its hosts. */
struct nf_timing {
    double initial_rto;        /* before the first sample */
    double min_rto_margin;     /* floor of 4 RTTVAR in the RTO */
    double max_rto;
    double min_reorder_window; /* how much later a chunk may be sent than one that it overtakes, at least (RFC 8985) */
    double delay_threshold;    /* queueing delay that counts as congestion where no switch marks (RFC 6817) */
    double pacing_burst;       /* depth of the token bucket, in seconds at the paced rate */
    double ack_coalescing;     /* how long results may wait in the socket so that one read takes many */
};

struct nf_rtt {
    double srtt, min_rtt, rttvar;
    int64_t backoff;
    int is_ambiguous; /* `srtt` is of ambiguous samples only */
};

NF_API void nf_rtt_init(struct nf_rtt *r, const struct nf_timing *t);

/* Adds the RTT of a chunk that was sent once. */
NF_API void nf_rtt_sample(struct nf_rtt *r, const struct nf_timing *t, double seconds);

/* Adds the RTT of a chunk that was sent once while another was retransmitted. It is ambiguous, as it includes another worker's
 * wait, and capped at 2 * SRTT: uncapped, timeouts would lengthen the timeout. */
NF_API void nf_rtt_ambiguous_sample(struct nf_rtt *r, const struct nf_timing *t, double seconds);

/* Retransmissions were spurious and the RTT is this long: raises SRTT to it until there is a sample. Without this rule an SRTT
 * below the real RTT makes every chunk time out and is never corrected. */
NF_API void nf_rtt_on_spurious(struct nf_rtt *r, const struct nf_timing *t, double seconds);

/* A retransmitted chunk was acknowledged: the next timeout is not doubled. To keep the backoff (Karn) would make losses at
 * small windows take seconds; queues beyond the RTO are left to the window. */
NF_API void nf_rtt_reset_backoff(struct nf_rtt *r);

/* A timeout occurred: the RTO doubles. */
NF_API void nf_rtt_on_timeout(struct nf_rtt *r, const struct nf_timing *t);

NF_API double nf_rtt_rto(const struct nf_rtt *r, const struct nf_timing *t);
NF_API double nf_rtt_reorder_window(const struct nf_rtt *r, const struct nf_timing *t);

#endif
