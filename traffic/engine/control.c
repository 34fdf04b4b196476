/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What PANAMA publishes (MLSys 2021) is the mechanism: windows follow the marks that nodes OR over all contributions, so that
 * those of a job move in step. The constants are DCTCP's (RFC 8257), and our own choice. A switch that marks nothing (BMv2
 * does not know how full its own buffers are) is noticed by the delay that builds up in it, as in LEDBAT (RFC 6817).
 *
 * Beside TCP that is too meek or too greedy, so two rules more (docs/decisions/0024): who is marked gives up as large a part
 * as all senders together did the last time; and where others fill the queue whatever is marked, losses count, as for them. */

#include "control.h"

enum {
    ATP_CEILING = 100,
    ATP_INITIAL = 16,
    INITIAL = 4, /* of each worker in each tree: a slow switch gets all of them at once */
    FLOOR = 4,
    UNMARKED_FLOOR = 32, /* half of the usual queue: where nothing ever marks, losses alone do not push below it */
    LATE_FLOOR = 2,
    BURST_PACKETS = 16,
    BURST_LEAST = 4
};

enum {
    FULL = 16,    /* windows in a row that met a deep queue as a whole */
    CONTEND = 256 /* windows, until it is tried again whether others still fill the queue */
};

static const double G = 1.0 / 16;
static const double FRAMES = 1.25;     /* of 1514 bytes, that a window grows by: TCP's one, and a quarter as one mark of all counts */
static const double DIP = 0.85;        /* of what all senders gave up, this one does */
static const double DIP_MOST = 0.4;    /* a little more than CUBIC's 0.3 (RFC 9438) */
static const double SUDDEN = 0.2;      /* what a window that is marked as a whole gives up at least: others came all at once */
static const double DEEP = 1.5;        /* a queue that is filled, against one that is marked already */
static const double CUT = 4;           /* down to this part of itself a window yields before it contends */
static const double BETA = 0.7;        /* what a loss leaves of a window that contends: CUBIC's */
static const double BOLDER = 1.25;     /* a window that contends grows faster: CUBIC climbs back faster than Reno */
static const double FADING = 1.0 / 64; /* of `held`, in a window */

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }
static double magnitude(double a) { return a < 0 ? -a : a; }

void nf_rtt_start(struct nf_rtt *r, const struct nf_timing *t) {
    *r = (struct nf_rtt){.least = t->longest_timeout, .backoff = 1};
}

static double measured(const struct nf_rtt *r, const struct nf_timing *t) {
    return r->smoothed > 0 ? r->smoothed + most(t->least_variance, 4 * r->variation) : t->first_timeout;
}

void nf_rtt_sample(struct nf_rtt *r, const struct nf_timing *t, double seconds) {
    r->backoff = 1;
    r->least = least(r->least, seconds);
    if (r->smoothed == 0 || r->guessed) {
        r->guessed = 0;
        r->smoothed = seconds;
        r->variation = seconds / 2;
        return;
    }
    /* a chunk that waited for another worker's loss says little of the way: it counts as far as was expected */
    seconds = least(seconds, measured(r, t));
    r->variation += (magnitude(r->smoothed - seconds) - r->variation) / 4;
    r->smoothed += (seconds - r->smoothed) / 8;
}

void nf_rtt_waited(struct nf_rtt *r, const struct nf_timing *t, double seconds) {
    int first = r->smoothed == 0, guessed = r->guessed || first;
    double known = least(r->least, seconds);
    r->guessed = 0;
    nf_rtt_sample(r, t, first ? seconds : least(seconds, 2 * r->smoothed));
    r->guessed = guessed;
    r->least = known;
}

void nf_rtt_longer(struct nf_rtt *r, const struct nf_timing *t, double seconds) {
    if (seconds <= r->smoothed) return;
    r->smoothed = least(seconds, t->longest_timeout);
    r->guessed = 1;
}

void nf_rtt_progress(struct nf_rtt *r) { r->backoff = 1; }

double nf_rtt_timeout(const struct nf_rtt *r, const struct nf_timing *t) {
    return least(t->longest_timeout, measured(r, t) * (double)r->backoff);
}

void nf_rtt_expired(struct nf_rtt *r, const struct nf_timing *t) {
    if (nf_rtt_timeout(r, t) < t->longest_timeout) r->backoff *= 2;
}

/* RFC 8985's reordering window, a quarter of the round trip. */
double nf_rtt_reordering(const struct nf_rtt *r, const struct nf_timing *t) {
    return most(t->least_reordering, r->smoothed / 4);
}

double nf_step(double wire_bytes, double share) { return FRAMES * 1514 / wire_bytes * share; }

void nf_window_start(struct nf_window *w, enum nf_congestion kind, int64_t limit, double late, double step) {
    *w = (struct nf_window){.kind = kind, .limit = limit, .alpha = 1, .late = late, .step = step, .delay = NF_UNKNOWN, .shallow = NF_UNKNOWN, .starting = 1};
    if (kind == NF_ATP && limit > ATP_CEILING) w->limit = ATP_CEILING;
    int64_t first = kind == NF_FIXED ? limit : kind == NF_ATP ? ATP_INITIAL : INITIAL;
    w->size = (double)(first < w->limit ? first : w->limit);
}

int64_t nf_window_size(const struct nf_window *w) { return (int64_t)w->size; }

static void forget(struct nf_window *w) {
    w->seen = w->marked = 0;
    w->delay = NF_UNKNOWN;
}

static void shrink(struct nf_window *w, double factor, int64_t floor) {
    double low = (double)(floor < w->limit ? floor : w->limit);
    w->size = least(w->size, most(low, w->size * factor));
    forget(w);
}

static void grow(struct nf_window *w, double by) { w->size = least((double)w->limit, w->size + by); }

/* Between two runs of marks, round trips fall by the part of their windows that all senders gave up, on average. */
static void note_trips(struct nf_window *w) {
    if (w->delay >= NF_UNKNOWN) return;
    double trip = w->trip + w->delay;
    if (!w->marked) {
        w->low = least(w->low, trip);
        return;
    }
    if (!w->marks_lately && w->high > 0) {
        w->dip = least(DIP_MOST, DIP * (1 - w->low / w->high));
        w->high = 0;
    }
    w->high = w->low = most(w->high, trip);
}

static int is_late(const struct nf_window *w) { return !w->marks_ever && w->delay > w->late && w->delay < NF_UNKNOWN; }

/* What is left of a window that met congestion. */
static double rest(const struct nf_window *w) {
    if (w->marked) return 1 - most(most(w->alpha / 2, w->dip), SUDDEN * (double)w->marked / (double)w->seen);
    return is_late(w) ? most(0.5, w->late / w->delay) : 1;
}

/* Whether others fill the queue: whole windows met a deep one after the other, however far the size came down. Only marks
 * say so: where nothing marks, it may be a switch that is slow at any window. And marks alone do not: a tree over many
 * links meets bursts of short flows on one or another of them at any time. */
static int others_fill(struct nf_window *w) {
    int full = w->marked == w->seen && w->delay >= DEEP * w->shallow;
    w->held -= FADING * w->held;
    if (!w->full) w->before = most(w->size, w->held);
    w->full = full ? w->full + 1 : 0;
    return w->full >= FULL && w->size <= most(least(FLOOR, (double)w->limit), w->before / CUT);
}

/* Once in a window. Windows without a mark may come several at a time. */
static void panama_turn(struct nf_window *w) {
    double grown = w->step * most(1, (double)(int64_t)((double)w->seen / w->size));
    w->alpha += G * ((double)w->marked / (double)w->seen - w->alpha);
    note_trips(w);
    w->marks_lately = w->marked > 0;
    w->marks_ever |= w->marks_lately;
    if (w->marked) w->starting = 0;
    if (w->contending) {
        w->contending--;
        w->full = 0;
        grow(w, BOLDER * grown);
        w->held = w->size;
    } else if (others_fill(w)) {
        w->contending = CONTEND;
        w->size = most(w->size, w->before);
    } else if (rest(w) < 1) {
        shrink(w, rest(w), w->marked ? FLOOR : LATE_FLOOR);
    } else if (!w->starting) {
        grow(w, grown);
    }
    forget(w);
}

static void panama_results(struct nf_window *w, const struct nf_came *came) {
    w->trip = came->trip;
    if (came->delay < NF_UNKNOWN) {
        if (came->marked == came->count) w->shallow = least(w->shallow, came->delay);
        w->delay = least(w->delay, came->delay);
        w->starting = w->starting && (w->marks_ever || came->delay <= w->late);
        if (w->starting && !came->marked) grow(w, (double)came->count);
    }
    w->seen += came->count;
    w->marked += came->marked;
    if ((double)w->seen >= w->size) panama_turn(w);
}

static void atp_results(struct nf_window *w, int64_t count, int64_t marked) {
    w->seen += count;
    w->marked += marked;
    if (w->seen < (int64_t)w->size) return;
    if (w->marked)
        w->size = most(1, (double)((int64_t)w->size / 2));
    else
        grow(w, 1);
    forget(w);
}

void nf_window_results(struct nf_window *w, const struct nf_came *came) {
    if (w->kind == NF_PANAMA) panama_results(w, came);
    if (w->kind == NF_ATP) atp_results(w, came->count, came->marked);
}

void nf_window_loss(struct nf_window *w) {
    if (w->kind == NF_ATP) {
        w->size = most(1, (double)((int64_t)w->size / 2));
        forget(w);
    }
    if (w->kind != NF_PANAMA) return;
    /* queues that mark do so before they overflow: where marks were seen but not lately, a loss is bad luck on a line */
    if (w->contending) {
        shrink(w, BETA, FLOOR);
        return;
    }
    if (!w->marks_ever && w->size <= UNMARKED_FLOOR) return;
    w->starting = 0;
    if (!w->marks_ever)
        shrink(w, 0.5, UNMARKED_FLOOR);
    else if (w->marks_lately || w->marked)
        shrink(w, 0.5, FLOOR);
}

void nf_pacer_start(struct nf_pacer *p, double rate_mbps, double wire_bytes, double share, double burst, double now) {
    p->per_second = share * rate_mbps * 1e6 / (8 * wire_bytes);
    p->depth = most(most(BURST_LEAST, share * BURST_PACKETS), p->per_second * burst);
    p->tokens = p->depth;
    p->filled = now;
}

int64_t nf_pacer_allowance(struct nf_pacer *p, double now) {
    if (p->per_second == 0) return INT64_MAX;
    p->tokens = least(p->depth, p->tokens + (now - p->filled) * p->per_second);
    p->filled = now;
    return p->tokens > 0 ? (int64_t)p->tokens : 0;
}

double nf_pacer_wait(const struct nf_pacer *p) {
    return p->per_second == 0 ? 0 : most(0, (p->depth / 4 - p->tokens) / p->per_second);
}
