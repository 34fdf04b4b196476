/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "acks.h"

enum { SPURIOUS_CHECK = 32 }; /* results without an unambiguous RTT, until retransmissions are checked */

static const double SPURIOUS = 0.75; /* part of these that have duplicates: with heavy loss it is a half */

void acks_record(struct tree *t, int64_t channel, int marked, double now) {
    const struct channel *c = &t->channels[channel];
    struct flight *f = flight_of(t, channel);
    double rtt = now - c->sent_at, since_first = now - c->first_sent_at;
    t->spurious.count++;
    if (t->spurious.min_rtt == 0 || since_first < t->spurious.min_rtt) t->spurious.min_rtt = since_first;
    if (c->is_retransmitted) {
        int is_of_retransmission = t->rtt.srtt == 0 || rtt >= t->rtt.min_rtt;
        if (is_of_retransmission && c->sent_at > f->newest_retx_acked_sent_at) f->newest_retx_acked_sent_at = c->sent_at;
    } else {
        if (c->sent_at > t->last_retx_at) {
            t->acks.unambiguous++;
            t->acks.rtt_sum += rtt;
        } else if (t->acks.min_ambiguous_rtt == 0 || rtt < t->acks.min_ambiguous_rtt) {
            t->acks.min_ambiguous_rtt = rtt;
        }
        if (c->sent_at >= c->segment->first_acked_at) {
            t->acks.undelayed++;
            t->acks.undelayed_rtt_sum += rtt;
        }
        if (c->sent_at > f->newest_acked_sent_at) f->newest_acked_sent_at = c->sent_at;
    }
    if (now < c->segment->first_acked_at) c->segment->first_acked_at = now;
    t->acks.count++;
    t->acks.marked += marked;
    t->results++;
    t->marked += marked;
}

/* If every chunk is retransmitted before it can be acknowledged, no RTT is ever unambiguous. Then almost all chunks have two
 * results, as nothing was lost (the idea of RFC 4015): the smallest of many RTTs since the first transmission is right. */
static void check_spurious(struct tree *t, int is_rtt_known) {
    if (!is_rtt_known && t->spurious.count < SPURIOUS_CHECK) return;
    if (!is_rtt_known && (double)t->spurious.duplicates >= SPURIOUS * (double)t->spurious.count)
        nf_rtt_on_spurious(&t->rtt, &t->timing, t->spurious.min_rtt);
    t->spurious = (struct spurious_check){0};
}

/* RTTs and marks count once a window, as the gains of RFC 6298 and RFC 8257 require: with a sample for each batch the RTO would
 * forget within one RTT how long an RTT can be. */
static void account_window(struct tree *t) {
    struct ack_batch acks = t->acks;
    t->acks = (struct ack_batch){0};
    check_spurious(t, acks.unambiguous > 0);
    if (acks.unambiguous)
        nf_rtt_sample(&t->rtt, &t->timing, acks.rtt_sum / (double)acks.unambiguous);
    else if (acks.min_ambiguous_rtt > 0)
        nf_rtt_ambiguous_sample(&t->rtt, &t->timing, acks.min_ambiguous_rtt);
    struct nf_ack_summary summary = {acks.count, acks.marked, NF_UNKNOWN, t->rtt.min_rtt};
    if (acks.undelayed) summary.delay = acks.undelayed_rtt_sum / (double)acks.undelayed - t->rtt.min_rtt;
    nf_window_on_acks(&t->window, &summary);
}

void acks_update_window(struct tree *t) {
    int is_whole = t->acks.count >= nf_window_cwnd(&t->window) || t->in_flight == 0;
    if (is_whole || t->rtt.srtt == 0) account_window(t);
}
