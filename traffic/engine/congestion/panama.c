/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Windows follow ECN marks that nodes OR over all contributions, so that the windows of a job move in step. A switch that marks
 * nothing (BMv2 does not know how full its buffers are) is detected by queueing delay.
 *
 * Beside TCP that yields either too much or too little, so two rules more (docs/decisions/0024): a marked sender backs off by
 * the part by which all senders together did the last time; and where other senders fill the queue whatever is marked, losses
 * are the signal, as they are for those. */

#include "panama.h"

enum {
    MIN_CWND = 4,
    MIN_CWND_WITHOUT_MARKS = 32, /* half of the usual queue: without marks, losses alone do not reduce cwnd below it */
    MIN_CWND_DELAYED = 2
};

enum {
    DEEP_WINDOWS = 16, /* in a row that met a deep queue as a whole */
    CONTENDING_WINDOWS = 256 /* until it is tested again whether other senders still fill the queue */
};

static const double G = 1.0 / 16;
static const double PEER_BACKOFF_GAIN = 0.85; /* part of the measured backoff of all senders that this one takes */
static const double MAX_PEER_BACKOFF = 0.4; /* a little more than CUBIC's 0.3 (RFC 9438) */
static const double MIN_ALL_MARKED_BACKOFF = 0.2; /* of a window that is marked as a whole: many senders started at once */
static const double DEEP_QUEUE_RATIO = 1.5; /* delay of a filled queue over the delay at which marking starts */
static const double CONTENTION_REDUCTION = 4; /* cwnd falls to this part before it contends */
static const double CONTENTION_BETA = 0.7; /* part of a contending cwnd that a loss leaves: CUBIC's */
static const double CONTENTION_GAIN = 1.25; /* of the growth of a contending cwnd: CUBIC recovers faster than Reno */
static const double CONTENDED_DECAY = 1.0 / 64; /* of `contended_cwnd`, a window */

static double min_of(double a, double b) { return a < b ? a : b; }
static double max_of(double a, double b) { return a > b ? a : b; }

static void shrink(struct nf_window *w, double factor, int64_t floor) {
    double min_cwnd = (double)(floor < w->max_cwnd ? floor : w->max_cwnd);
    w->cwnd = min_of(w->cwnd, max_of(min_cwnd, w->cwnd * factor));
    window_reset_counts(w);
}

/* Between two runs of marks RTTs fall by the part that all senders backed off by, on average. */
static void measure_peer_backoff(struct nf_window *w) {
    if (w->min_delay >= NF_UNKNOWN) return;
    double rtt = w->min_rtt + w->min_delay;
    if (!w->marked) {
        w->trough_rtt = min_of(w->trough_rtt, rtt);
        return;
    }
    if (!w->was_marked && w->peak_rtt > 0) {
        w->peer_backoff = min_of(MAX_PEER_BACKOFF, PEER_BACKOFF_GAIN * (1 - w->trough_rtt / w->peak_rtt));
        w->peak_rtt = 0;
    }
    w->peak_rtt = w->trough_rtt = max_of(w->peak_rtt, rtt);
}

static int is_delayed(const struct nf_window *w) {
    return !w->saw_marks && w->min_delay > w->delay_threshold && w->min_delay < NF_UNKNOWN;
}

/* Factor of cwnd after a window: below 1 if it met congestion. */
static double reduction(const struct nf_window *w) {
    if (w->marked)
        return 1 - max_of(max_of(w->alpha / 2, w->peer_backoff), MIN_ALL_MARKED_BACKOFF * (double)w->marked / (double)w->acked);
    return is_delayed(w) ? max_of(0.5, w->delay_threshold / w->min_delay) : 1;
}

/* Whether other senders fill the queue: windows in a row met a deep queue as a whole, however far cwnd came down. Only marks
 * prove it: without them it may be a switch that is slow at any window. And marks alone do not: a tree over many links meets
 * bursts of short flows on one or another of them at any time. */
static int is_queue_filled_by_others(struct nf_window *w) {
    int is_deep = w->marked == w->acked && w->min_delay >= DEEP_QUEUE_RATIO * w->marking_delay;
    w->contended_cwnd -= CONTENDED_DECAY * w->contended_cwnd;
    if (!w->deep_windows) w->cwnd_before_deep = max_of(w->cwnd, w->contended_cwnd);
    w->deep_windows = is_deep ? w->deep_windows + 1 : 0;
    return w->deep_windows >= DEEP_WINDOWS &&
           w->cwnd <= max_of(min_of(MIN_CWND, (double)w->max_cwnd), w->cwnd_before_deep / CONTENTION_REDUCTION);
}

/* Once a window. Several windows without a mark may be acknowledged at a time. */
static void end_window(struct nf_window *w) {
    double growth = w->increase * max_of(1, (double)(int64_t)((double)w->acked / w->cwnd));
    w->alpha += G * ((double)w->marked / (double)w->acked - w->alpha);
    measure_peer_backoff(w);
    w->was_marked = w->marked > 0;
    w->saw_marks |= w->was_marked;
    if (w->marked) w->in_slow_start = 0;
    if (w->contending_windows) {
        w->contending_windows--;
        w->deep_windows = 0;
        window_grow(w, CONTENTION_GAIN * growth);
        w->contended_cwnd = w->cwnd;
    } else if (is_queue_filled_by_others(w)) {
        w->contending_windows = CONTENDING_WINDOWS;
        w->cwnd = max_of(w->cwnd, w->cwnd_before_deep);
    } else if (reduction(w) < 1) {
        shrink(w, reduction(w), w->marked ? MIN_CWND : MIN_CWND_DELAYED);
    } else if (!w->in_slow_start) {
        window_grow(w, growth);
    }
    window_reset_counts(w);
}

void panama_on_acks(struct nf_window *w, const struct nf_ack_summary *acks) {
    w->min_rtt = acks->min_rtt;
    if (acks->delay < NF_UNKNOWN) {
        if (acks->marked == acks->count) w->marking_delay = min_of(w->marking_delay, acks->delay);
        w->min_delay = min_of(w->min_delay, acks->delay);
        w->in_slow_start = w->in_slow_start && (w->saw_marks || acks->delay <= w->delay_threshold);
        if (w->in_slow_start && !acks->marked) window_grow(w, (double)acks->count);
    }
    w->acked += acks->count;
    w->marked += acks->marked;
    if ((double)w->acked >= w->cwnd) end_window(w);
}

/* Queues that mark do so before they overflow: where marks were seen but not in the last window, the loss is a bit error. */
void panama_on_loss(struct nf_window *w) {
    if (w->contending_windows) {
        shrink(w, CONTENTION_BETA, MIN_CWND);
        return;
    }
    if (!w->saw_marks && w->cwnd <= MIN_CWND_WITHOUT_MARKS) return;
    w->in_slow_start = 0;
    if (!w->saw_marks)
        shrink(w, 0.5, MIN_CWND_WITHOUT_MARKS);
    else if (w->was_marked || w->marked)
        shrink(w, 0.5, MIN_CWND);
}
