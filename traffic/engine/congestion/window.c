/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "window.h"

/* The window grows by TCP's one frame of 1514 bytes and a quarter, because a mark of one contribution is a mark of all. */
static const double INCREASE_FRAMES = 1.25;

static void fixed_init(void *state, const struct nf_window_settings *settings) {
    *(struct nf_cwnd *)state = cwnd_of(settings->max_cwnd, settings->max_cwnd);
}

static void fixed_on_acks(void *state, const struct nf_ack_summary *acks) { (void)state, (void)acks; }

static void fixed_on_loss(void *state) { (void)state; }

static const struct nf_congestion_ops fixed_ops = {fixed_init, fixed_on_acks, fixed_on_loss};

static const struct nf_congestion_ops *const OPS[] = {[NF_FIXED] = &fixed_ops, [NF_ATP] = &atp_ops, [NF_PANAMA] = &panama_ops};

double nf_window_increase(double wire_bytes, double share) { return INCREASE_FRAMES * 1514 / wire_bytes * share; }

void nf_window_init(struct nf_window *w, enum nf_congestion algorithm, const struct nf_window_settings *settings) {
    w->ops = OPS[algorithm];
    w->ops->init(&w->state, settings);
}

int64_t nf_window_cwnd(const struct nf_window *w) { return (int64_t)w->state.cwnd.size; }

void nf_window_on_acks(struct nf_window *w, const struct nf_ack_summary *acks) { w->ops->on_acks(&w->state, acks); }

void nf_window_on_loss(struct nf_window *w) { w->ops->on_loss(&w->state); }
