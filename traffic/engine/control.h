/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* When a worker sends: how long it waits before it asks again (RFC 6298), how many chunks of a tree it keeps under way, and
 * at what rate. Times are seconds, of any clock that only grows. */

#ifndef NETFOLD_CONTROL_H
#define NETFOLD_CONTROL_H

#include <stdint.h>

enum nf_congestion { NF_FIXED, NF_ATP, NF_PANAMA };

/* What depends on the fabric and its hosts. */
struct nf_timing {
    double first_timeout;  /* before the first sample */
    double least_variance; /* what a timeout allows for beside the smoothed round trip, at least */
    double longest_timeout;
    double least_reordering; /* how much later a chunk may have gone than one that it overtakes, at least */
    double late;             /* where nothing marks: how much later than ever quickest means a queue */
    double burst;            /* seconds at the paced rate that may go at once */
    double gather;           /* how long results may lie in the socket, so that many are taken at once */
};

struct nf_rtt {
    double smoothed, least, variation;
    int64_t backoff;
    int guessed; /* `smoothed` is of a chunk that waited while others went again */
};

void nf_rtt_start(struct nf_rtt *r, const struct nf_timing *t);
/* A chunk that went once is back after so many seconds. */
void nf_rtt_sample(struct nf_rtt *r, const struct nf_timing *t, double seconds);
/* Only such are back as waited while others went again, of this worker and so of others, too: how long the way is they hardly
 * say, so they count no more than what was expected before anything was known. Else timeouts would follow timeouts. */
void nf_rtt_waited(struct nf_rtt *r, const struct nf_timing *t, double seconds);
/* What went again was not lost, and the way takes so long: that counts until a sample is better. */
void nf_rtt_longer(struct nf_rtt *r, const struct nf_timing *t, double seconds);
/* A chunk that went again is back: the next timeout is a first one again. To stay longer (Karn) would make many losses
 * at small windows take seconds; that queues do not outgrow the timeout is left to the window. */
void nf_rtt_progress(struct nf_rtt *r);
/* Nothing came back: wait twice as long the next time. */
void nf_rtt_expired(struct nf_rtt *r, const struct nf_timing *t);
double nf_rtt_timeout(const struct nf_rtt *r, const struct nf_timing *t);
double nf_rtt_reordering(const struct nf_rtt *r, const struct nf_timing *t);

/* The number of chunks (1 ... limit) to keep under way. One result acknowledges one chunk of every worker. */
struct nf_window {
    enum nf_congestion kind;
    int64_t limit;
    double size, alpha, late, step; /* `step`: what it grows by in a window that met no congestion */
    int64_t seen, marked;           /* of the results of this window */
    double delay;                   /* the least of them; NF_UNKNOWN */
    double trip, high, low;         /* the quickest round trip ever; the longest when marks came last, the shortest since */
    double dip;                     /* by what part round trips fell the last time after marks */
    double shallow;                 /* the least delay of a result with a mark: where marking begins */
    int64_t full;                   /* so many windows, one after the other, met a deep queue as a whole */
    double before, held;            /* the size before these; the size when it contended last, fading */
    int64_t contending;             /* so many windows more it holds its own against others who fill the queue */
    int starting, marks_ever, marks_lately;
};

#define NF_UNKNOWN 1e300

/* Results that came back. */
struct nf_came {
    int64_t count, marked; /* `marked`: of these, with a congestion mark */
    double delay;          /* so much later than the quickest ever; NF_UNKNOWN: some went twice */
    double trip;           /* of the quickest ever */
};

/* In chunks, so that trees that share a link grow together as one TCP connection would. */
double nf_step(double wire_bytes, double share);
void nf_window_start(struct nf_window *w, enum nf_congestion kind, int64_t limit, double late, double step);
int64_t nf_window_size(const struct nf_window *w);
void nf_window_results(struct nf_window *w, const struct nf_came *came);
/* A chunk was taken for lost. Called at most once for each round trip. */
void nf_window_loss(struct nf_window *w);

/* Packets a second, gathered up to a depth. per_second 0: no limit. */
struct nf_pacer {
    double per_second, depth, tokens, filled;
};

void nf_pacer_start(struct nf_pacer *p, double rate_mbps, double wire_bytes, double share, double burst, double now);
int64_t nf_pacer_allowance(struct nf_pacer *p, double now);
/* Seconds until a quarter of a burst may go. */
double nf_pacer_wait(const struct nf_pacer *p);

#endif
