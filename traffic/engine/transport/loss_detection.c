/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "loss_detection.h"

enum {
    MAX_TAIL = 4, /* more chunks in flight are no tail */
    TAIL_FACTOR = 4
};

int loss_is_overtaken(const struct tree *t) {
    return t->channels[t->oldest].sent_at < t->newest_acked_sent_at - nf_rtt_reorder_window(&t->rtt, &t->timing);
}

/* Returns the time of the tail loss probe (RFC 8985): after two RTTs of silence the oldest chunk is retransmitted, once. There
 * is no probe where the RTO is not much longer than that, because it would mostly reach workers that wait for slower ones. Nor
 * is there one where many chunks are in flight and none is acknowledged: a loss stops one channel only. */
static double tail_probe_at(const struct tree *t) {
    if (t->tail_probed || t->oldest == NO_CHANNEL || t->in_flight > MAX_TAIL || t->rtt.srtt == 0) return NF_UNKNOWN;
    if (nf_rtt_rto(&t->rtt, &t->timing) < TAIL_FACTOR * t->rtt.srtt) return NF_UNKNOWN;
    return t->last_activity_at + 2 * t->rtt.srtt + t->timing.min_reorder_window;
}

/* Returns when the oldest chunk, or its last probe, times out. */
static double timeout_at(const struct tree *t) {
    double sent_at = t->channels[t->oldest].sent_at;
    return (t->probed_at > sent_at ? t->probed_at : sent_at) + nf_rtt_rto(&t->rtt, &t->timing);
}

/* Returns when the oldest chunk is lost although no later one was acknowledged that was sent once: a retransmitted chunk is
 * acknowledged, an earlier one is not, and for an RTT nothing was received. If the wait were for a slow worker, its other
 * chunks would arrive meanwhile. */
static double retx_overtaken_at(const struct tree *t) {
    double last = t->newest_retx_acked_sent_at - nf_rtt_reorder_window(&t->rtt, &t->timing);
    if (t->newest_retx_acked_sent_at <= t->newest_acked_sent_at || t->channels[t->oldest].sent_at >= last) return NF_UNKNOWN;
    return t->last_activity_at + t->rtt.srtt + t->timing.min_reorder_window;
}

/* An overtaken chunk is lost. After silence the oldest chunk alone is retransmitted: other losses are overtaken by what is sent
 * next, or by the probe. Most silence is another worker's, which no probe ends. */
void loss_apply_timers(struct tree *t, double now) {
    if (t->oldest == NO_CHANNEL) return;
    if (now >= retx_overtaken_at(t)) t->newest_acked_sent_at = t->newest_retx_acked_sent_at;
    if (loss_is_overtaken(t)) {
        if (now - t->cwnd_reduced_at > t->rtt.srtt) {
            t->cwnd_reduced_at = now;
            nf_window_on_loss(&t->window);
        }
        return;
    }
    if (now >= tail_probe_at(t)) {
        t->tail_probed = 1;
        t->probe_due = 1;
        t->probes++;
    }
    if (now >= timeout_at(t)) {
        t->probed_at = now;
        t->probe_due = 1;
        t->probes++;
        nf_rtt_on_timeout(&t->rtt, &t->timing);
    }
}

int loss_must_retransmit(const struct tree *t) { return t->oldest != NO_CHANNEL && (t->probe_due || loss_is_overtaken(t)); }

double loss_next_deadline(const struct tree *t) {
    double timeout = timeout_at(t), tail = tail_probe_at(t), overtaken = retx_overtaken_at(t);
    double next = tail < timeout ? tail : timeout;
    return overtaken < next ? overtaken : next;
}
