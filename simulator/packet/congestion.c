/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "congestion.h"

#include <math.h>

static const double CUBIC_C = 0.4, CUBIC_BETA = 0.7, DCTCP_G = 1.0 / 16;

enum { MIN_CWND = 2 };

void np_cwnd_init(struct np_cwnd *w, int transport, double initial) {
    *w = (struct np_cwnd){.transport = transport, .size = initial, .threshold = 1e9, .epoch = -1, .alpha = 1};
}

static void begin_stage(struct np_cwnd *w, double now) {
    w->epoch = now;
    w->rise = w->estimate = w->size;
    if (w->peak <= w->size) {
        w->peak = w->size;
        w->k = 0;
    } else {
        w->k = cbrt((w->peak - w->size) / CUBIC_C);
    }
}

static int is_cubic(const struct np_cwnd *w) { return w->transport == NP_CUBIC || w->transport == NP_CUBIC_ECN; }

/* Grows by RFC 9438, sections 4.2 to 4.5. */
static void grow_cubic(struct np_cwnd *w, int64_t segments, double now, double rtt) {
    if (w->epoch < 0) begin_stage(w, now);
    double t = now - w->epoch + rtt - w->k, target = w->peak + CUBIC_C * t * t * t;
    double alpha = w->estimate < w->peak ? 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA) : 1;
    w->estimate += alpha * (double)segments / w->size;
    target = fmin(fmax(target, w->size), 1.5 * w->size);
    w->size += (target - w->size) / w->size * (double)segments;
    if (w->estimate > w->size) w->size = w->estimate;
}

void np_cwnd_grow(struct np_cwnd *w, int64_t segments, double now, double rtt) {
    if (w->size < w->threshold) {
        /* RFC 5681 adds a segment for each acknowledgment; CUBIC and DCTCP count bytes, as Linux and ns-3 do. */
        w->size += w->transport == NP_RENO ? 1 : (double)segments;
        return;
    }
    if (is_cubic(w))
        grow_cubic(w, segments, now, rtt);
    else
        w->size += (w->transport == NP_RENO ? 1 : (double)segments) / w->size;
}

void np_cwnd_on_echo(struct np_cwnd *w, int64_t segments, int echo, uint32_t on_ack, uint32_t next) {
    if (!np_uses_ecn(w->transport)) return;
    w->acked += segments;
    if (echo) w->echoed += segments;
    if (w->transport == NP_DCTCP && on_ack > w->mark && w->acked) {
        w->alpha += DCTCP_G * ((double)w->echoed / (double)w->acked - w->alpha);
        w->acked = w->echoed = 0;
        w->mark = next;
    }
    if (w->reduced && on_ack >= w->reduced_until) w->reduced = 0;
    if (!echo || w->reduced) return;
    w->reduced = 1;
    w->reduced_until = next;
    if (is_cubic(w)) { /* RFC 3168: as a loss */
        np_cwnd_on_loss(w, w->size);
        w->size = w->threshold;
        return;
    }
    w->size = w->threshold = fmax(MIN_CWND, w->size * (1 - w->alpha / 2));
}

void np_cwnd_on_loss(struct np_cwnd *w, double in_flight) {
    if (is_cubic(w)) {
        /* This is RFC 9438's fast convergence. */
        w->peak = w->size < w->peak ? w->size * (1 + CUBIC_BETA) / 2 : w->size;
        w->epoch = -1;
        w->threshold = fmax(MIN_CWND, w->size * CUBIC_BETA);
    } else {
        w->threshold = fmax(MIN_CWND, in_flight / 2);
    }
}

void np_cwnd_on_timeout(struct np_cwnd *w, double in_flight) {
    np_cwnd_on_loss(w, in_flight);
    w->peak = 0; /* RFC 9438, section 4.8: the next stage starts at its own peak */
    w->size = 1;
    w->reduced = 0;
}
