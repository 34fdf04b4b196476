/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "loss_detection.h"

enum {
    MAX_TAIL = 4, /* more chunks in flight are no tail */
    TAIL_FACTOR = 4
};

int loss_is_overtaken(const struct tree *t, const struct flight *f) {
    if (f->oldest == NO_CHANNEL) return 0;
    return t->channels[f->oldest].sent_at < f->newest_acked_sent_at - nf_rtt_reorder_window(&t->rtt, &t->timing);
}

/* Returns the channel in flight whose last transmission is the oldest, or NO_CHANNEL. */
static int32_t oldest_channel(const struct tree *t) {
    int32_t first = t->flights[0].oldest, second = t->flights[1].oldest;
    if (first == NO_CHANNEL || second == NO_CHANNEL) return first == NO_CHANNEL ? second : first;
    return t->channels[second].sent_at < t->channels[first].sent_at ? second : first;
}

/* Returns the time of the tail loss probe (RFC 8985): after two RTTs of silence the oldest chunk is retransmitted, once. There
 * is no probe where the RTO is not much longer than that, because it would mostly reach workers that wait for slower ones. Nor
 * is there one where many chunks are in flight and none is acknowledged: a loss stops one channel only. */
static double tail_probe_at(const struct tree *t) {
    if (t->tail_probed || !t->in_flight || t->in_flight > MAX_TAIL || t->rtt.srtt == 0) return NF_UNKNOWN;
    if (nf_rtt_rto(&t->rtt, &t->timing) < TAIL_FACTOR * t->rtt.srtt) return NF_UNKNOWN;
    return t->last_activity_at + 2 * t->rtt.srtt + t->timing.min_reorder_window;
}

/* Returns when the oldest chunk, or its last probe, times out. */
static double timeout_at(const struct tree *t) {
    double sent_at = t->channels[oldest_channel(t)].sent_at;
    return (t->probed_at > sent_at ? t->probed_at : sent_at) + nf_rtt_rto(&t->rtt, &t->timing);
}

/* Returns when the oldest chunk of a flight is lost although no later one was acknowledged that was sent once: a retransmitted chunk is
 * acknowledged, an earlier one is not, and for an RTT nothing was received. If the wait were for a slow worker, its other
 * chunks would arrive meanwhile. */
static double retx_overtaken_at(const struct tree *t, const struct flight *f) {
    double last = f->newest_retx_acked_sent_at - nf_rtt_reorder_window(&t->rtt, &t->timing);
    if (f->oldest == NO_CHANNEL || f->newest_retx_acked_sent_at <= f->newest_acked_sent_at) return NF_UNKNOWN;
    if (t->channels[f->oldest].sent_at >= last) return NF_UNKNOWN;
    return t->last_activity_at + t->rtt.srtt + t->timing.min_reorder_window;
}

/* An overtaken chunk is lost. After silence the oldest chunk alone is retransmitted: other losses are overtaken by what is sent
 * next, or by the probe. Most silence is another worker's, which no probe ends. */
void loss_apply_timers(struct tree *t, double now) {
    int is_overtaken = 0;
    if (!t->in_flight) return;
    for (struct flight *f = t->flights; f < t->flights + FLIGHTS; f++) {
        if (now >= retx_overtaken_at(t, f)) f->newest_acked_sent_at = f->newest_retx_acked_sent_at;
        is_overtaken |= loss_is_overtaken(t, f);
    }
    if (is_overtaken) {
        if (now - t->cwnd_reduced_at > t->rtt.srtt) {
            t->cwnd_reduced_at = now;
            nf_window_on_loss(&t->window);
        }
        return;
    }
    if (now >= tail_probe_at(t)) {
        t->tail_probed = 1;
        t->probe_due = 1;
    }
    if (now >= timeout_at(t)) {
        t->probed_at = now;
        t->probe_due = 1;
        nf_rtt_on_timeout(&t->rtt, &t->timing);
    }
}

int32_t loss_next_channel(const struct tree *t) {
    for (const struct flight *f = t->flights; f < t->flights + FLIGHTS; f++)
        if (loss_is_overtaken(t, f)) return f->oldest;
    return t->probe_due ? oldest_channel(t) : NO_CHANNEL;
}

double loss_next_deadline(const struct tree *t) {
    double timeout = timeout_at(t), tail = tail_probe_at(t), next = tail < timeout ? tail : timeout;
    for (const struct flight *f = t->flights; f < t->flights + FLIGHTS; f++) {
        double overtaken = retx_overtaken_at(t, f);
        if (overtaken < next) next = overtaken;
    }
    return next;
}
