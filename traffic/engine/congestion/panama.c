/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Windows follow ECN marks that nodes OR over all contributions, so that the windows of a job move in step. A switch that marks
 * nothing (BMv2 does not know how full its buffers are) is detected by queueing delay.
 *
 * On links shared with TCP that yields either too much or too little, so there are two more rules (docs/decisions/0024). A
 * marked sender backs off by the part by which all senders together did the last time. Where other senders fill the queue in
 * spite of marks, losses are the signal, as they are for those. */

#include "panama.h"

enum {
    INITIAL_CWND = 4, /* of each worker in each tree: a slow switch receives all of them at once */
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

static void init(void *state, const struct nf_window_settings *settings) {
    struct nf_panama *p = state;
    *p = (struct nf_panama){.cwnd = cwnd_of(INITIAL_CWND, settings->max_cwnd),
                            .alpha = 1,
                            .delay_threshold = settings->delay_threshold,
                            .increase = settings->increase,
                            .min_delay = NF_UNKNOWN,
                            .marking_delay = NF_UNKNOWN,
                            .in_slow_start = 1};
}

static void reset_counts(struct nf_panama *p) {
    p->acked = p->marked = 0;
    p->min_delay = NF_UNKNOWN;
}

static void shrink(struct nf_panama *p, double factor, int64_t floor) {
    double min_cwnd = (double)(floor < p->cwnd.max ? floor : p->cwnd.max);
    p->cwnd.size = min_of(p->cwnd.size, max_of(min_cwnd, p->cwnd.size * factor));
    reset_counts(p);
}

/* Measures by which part all senders backed off on average: by this part RTTs fall between two runs of marks. */
static void measure_peer_backoff(struct nf_panama *p) {
    if (p->min_delay >= NF_UNKNOWN) return;
    double rtt = p->min_rtt + p->min_delay;
    if (!p->marked) {
        p->trough_rtt = min_of(p->trough_rtt, rtt);
        return;
    }
    if (!p->was_marked && p->peak_rtt > 0) {
        p->peer_backoff = min_of(MAX_PEER_BACKOFF, PEER_BACKOFF_GAIN * (1 - p->trough_rtt / p->peak_rtt));
        p->peak_rtt = 0;
    }
    p->peak_rtt = p->trough_rtt = max_of(p->peak_rtt, rtt);
}

static int is_delayed(const struct nf_panama *p) {
    return !p->saw_marks && p->min_delay > p->delay_threshold && p->min_delay < NF_UNKNOWN;
}

/* Returns the factor of cwnd after a window: below 1 if it met congestion. */
static double reduction(const struct nf_panama *p) {
    if (p->marked)
        return 1 - max_of(max_of(p->alpha / 2, p->peer_backoff), MIN_ALL_MARKED_BACKOFF * (double)p->marked / (double)p->acked);
    return is_delayed(p) ? max_of(0.5, p->delay_threshold / p->min_delay) : 1;
}

/* Returns whether other senders fill the queue: windows in a row met a deep queue as a whole, however far cwnd came down. Only
 * marks prove it: without them it may be a switch that is slow at any window. Nor do marks alone: a tree over many links meets
 * bursts of short flows on one or another of them at any time. */
static int is_queue_filled_by_others(struct nf_panama *p) {
    int is_deep = p->marked == p->acked && p->min_delay >= DEEP_QUEUE_RATIO * p->marking_delay;
    p->contended_cwnd -= CONTENDED_DECAY * p->contended_cwnd;
    if (!p->deep_windows) p->cwnd_before_deep = max_of(p->cwnd.size, p->contended_cwnd);
    p->deep_windows = is_deep ? p->deep_windows + 1 : 0;
    return p->deep_windows >= DEEP_WINDOWS &&
           p->cwnd.size <= max_of(min_of(MIN_CWND, (double)p->cwnd.max), p->cwnd_before_deep / CONTENTION_REDUCTION);
}

/* Ends a window. Several windows without a mark may be acknowledged at a time. */
static void end_window(struct nf_panama *p) {
    double growth = p->increase * max_of(1, (double)(int64_t)((double)p->acked / p->cwnd.size));
    p->alpha += G * ((double)p->marked / (double)p->acked - p->alpha);
    measure_peer_backoff(p);
    p->was_marked = p->marked > 0;
    p->saw_marks |= p->was_marked;
    if (p->marked) p->in_slow_start = 0;
    if (p->contending_windows) {
        p->contending_windows--;
        p->deep_windows = 0;
        cwnd_grow(&p->cwnd, CONTENTION_GAIN * growth);
        p->contended_cwnd = p->cwnd.size;
    } else if (is_queue_filled_by_others(p)) {
        p->contending_windows = CONTENDING_WINDOWS;
        p->cwnd.size = max_of(p->cwnd.size, p->cwnd_before_deep);
    } else if (reduction(p) < 1) {
        shrink(p, reduction(p), p->marked ? MIN_CWND : MIN_CWND_DELAYED);
    } else if (!p->in_slow_start) {
        cwnd_grow(&p->cwnd, growth);
    }
    reset_counts(p);
}

static void on_acks(void *state, const struct nf_ack_summary *acks) {
    struct nf_panama *p = state;
    p->min_rtt = acks->min_rtt;
    if (acks->delay < NF_UNKNOWN) {
        if (acks->marked == acks->count) p->marking_delay = min_of(p->marking_delay, acks->delay);
        p->min_delay = min_of(p->min_delay, acks->delay);
        p->in_slow_start = p->in_slow_start && (p->saw_marks || acks->delay <= p->delay_threshold);
        if (p->in_slow_start && !acks->marked) cwnd_grow(&p->cwnd, (double)acks->count);
    }
    p->acked += acks->count;
    p->marked += acks->marked;
    if ((double)p->acked >= p->cwnd.size) end_window(p);
}

/* Queues that mark do so before they overflow. Where marks were seen but not in the last window, the loss is a bit error. */
static void on_loss(void *state) {
    struct nf_panama *p = state;
    if (p->contending_windows) {
        shrink(p, CONTENTION_BETA, MIN_CWND);
        return;
    }
    if (!p->saw_marks && p->cwnd.size <= MIN_CWND_WITHOUT_MARKS) return;
    p->in_slow_start = 0;
    if (!p->saw_marks)
        shrink(p, 0.5, MIN_CWND_WITHOUT_MARKS);
    else if (p->was_marked || p->marked)
        shrink(p, 0.5, MIN_CWND);
}

const struct nf_congestion_ops panama_ops = {init, on_acks, on_loss};
