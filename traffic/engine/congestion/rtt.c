/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "rtt.h"

static double min_of(double a, double b) { return a < b ? a : b; }
static double max_of(double a, double b) { return a > b ? a : b; }
static double magnitude(double a) { return a < 0 ? -a : a; }

void nf_rtt_init(struct nf_rtt *r, const struct nf_timing *t) { *r = (struct nf_rtt){.min_rtt = t->max_rto, .backoff = 1}; }

static double rto_without_backoff(const struct nf_rtt *r, const struct nf_timing *t) {
    return r->srtt > 0 ? r->srtt + max_of(t->min_rto_margin, 4 * r->rttvar) : t->initial_rto;
}

void nf_rtt_sample(struct nf_rtt *r, const struct nf_timing *t, double seconds) {
    r->backoff = 1;
    r->min_rtt = min_of(r->min_rtt, seconds);
    if (r->srtt == 0 || r->is_ambiguous) {
        r->is_ambiguous = 0;
        r->srtt = seconds;
        r->rttvar = seconds / 2;
        return;
    }
    /* A chunk that waited for another worker's retransmission does not measure the path, so the sample is capped at the RTO. */
    seconds = min_of(seconds, rto_without_backoff(r, t));
    r->rttvar += (magnitude(r->srtt - seconds) - r->rttvar) / 4;
    r->srtt += (seconds - r->srtt) / 8;
}

void nf_rtt_ambiguous_sample(struct nf_rtt *r, const struct nf_timing *t, double seconds) {
    int is_first = r->srtt == 0, is_ambiguous = r->is_ambiguous || is_first;
    double min_rtt = min_of(r->min_rtt, seconds);
    r->is_ambiguous = 0;
    nf_rtt_sample(r, t, is_first ? seconds : min_of(seconds, 2 * r->srtt));
    r->is_ambiguous = is_ambiguous;
    r->min_rtt = min_rtt;
}

void nf_rtt_on_spurious(struct nf_rtt *r, const struct nf_timing *t, double seconds) {
    if (seconds <= r->srtt) return;
    r->srtt = min_of(seconds, t->max_rto);
    r->is_ambiguous = 1;
}

void nf_rtt_reset_backoff(struct nf_rtt *r) { r->backoff = 1; }

double nf_rtt_rto(const struct nf_rtt *r, const struct nf_timing *t) {
    return min_of(t->max_rto, rto_without_backoff(r, t) * (double)r->backoff);
}

void nf_rtt_on_timeout(struct nf_rtt *r, const struct nf_timing *t) {
    if (nf_rtt_rto(r, t) < t->max_rto) r->backoff *= 2;
}

/* Returns a quarter of the RTT, as in RFC 8985. */
double nf_rtt_reorder_window(const struct nf_rtt *r, const struct nf_timing *t) {
    return max_of(t->min_reorder_window, r->srtt / 4);
}
