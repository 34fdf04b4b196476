/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "exchange.h"

#define PS_PER_SECOND 1e12

static void set_exchange_timer(struct np_exchanges *x, struct np_exchange *e, np_time due) {
    uint32_t owner_id = x->first_timer + (uint32_t)(e - x->exchanges);
    if (due < x->network->now) due = x->network->now;
    x->network->out_of_memory |= np_timer_set(&x->network->events, &e->timer, due, NP_WORKER, owner_id) < 0;
}

static const struct np_exchange_bucket *current_bucket(const struct np_exchanges *x, const struct np_exchange *e) {
    return &x->exchange_buckets[e->first_bucket + e->bucket];
}

static void release(struct np_exchanges *x, struct np_stream *s, double bytes) {
    s->released++;
    np_tcp_release(x->tcp, s->flow, s->message, (int64_t)(bytes / s->message + 0.999999));
}

static double message_of(const struct np_exchanges *x, const struct np_exchange *e, const struct np_stream *s) {
    return (double)current_bucket(x, e)->bytes * s->factor / e->steps;
}

/* Sends the messages whose predecessors all sources of the stream have delivered. */
static void release_ready(struct np_exchanges *x, struct np_stream *s) {
    const struct np_exchange *e = &x->exchanges[s->exchange];
    uint32_t may = (uint32_t)e->steps;
    for (int32_t i = 0; i < s->sources; i++) {
        uint32_t forward_path = x->streams[x->sources[s->first_source + i]].delivered + 1;
        if (forward_path < may) may = forward_path;
    }
    while (s->released < may) release(x, s, message_of(x, e, s));
}

static void begin_bucket(struct np_exchanges *x, struct np_exchange *e) {
    double *times = x->times + 2 * (e->first_time + e->iteration * e->buckets + e->bucket);
    times[0] = (double)(e->began + current_bucket(x, e)->ready) / PS_PER_SECOND;
    e->running = 1;
    e->done = 0;
    for (int32_t i = 0; i < e->streams; i++) {
        struct np_stream *s = &x->streams[e->first_stream + i];
        double segment = (double)x->tcp->settings->segment_bytes;
        s->base += s->message * s->released;
        s->message = (uint32_t)(message_of(x, e, s) / segment + 0.999999);
        if (!s->message) s->message = 1;
        s->released = s->delivered = 0;
    }
    for (int32_t i = 0; i < e->streams; i++) release_ready(x, &x->streams[e->first_stream + i]);
}

static void end_bucket(struct np_exchanges *x, struct np_exchange *e) {
    x->times[2 * (e->first_time + e->iteration * e->buckets + e->bucket) + 1] = (double)x->network->now / PS_PER_SECOND;
    e->running = 0;
    if (++e->bucket == e->buckets) {
        e->bucket = 0;
        np_time min_end = e->began + e->compute;
        e->began = x->network->now > min_end ? x->network->now : min_end;
        if (++e->iteration == e->iterations) return;
    }
    set_exchange_timer(x, e, e->began + current_bucket(x, e)->ready);
}

void np_exchanges_on_arrival(void *exchanges, int32_t flow, uint32_t segments) {
    struct np_exchanges *x = exchanges;
    struct np_stream *s = &x->streams[x->tcp->flows[flow].stream];
    struct np_exchange *e = &x->exchanges[s->exchange];
    uint32_t messages = (segments - s->base) / s->message;
    if (!e->running || messages == s->delivered) return;
    s->delivered = messages;
    if (messages == (uint32_t)e->steps && ++e->done == e->streams) {
        end_bucket(x, e);
        return;
    }
    for (int32_t i = 0; i < e->streams; i++) {
        struct np_stream *other = &x->streams[e->first_stream + i];
        for (int32_t k = 0; k < other->sources; k++)
            if (x->sources[other->first_source + k] == (int32_t)(s - x->streams)) release_ready(x, other);
    }
}

void np_exchanges_on_timer(struct np_exchanges *x, uint32_t which) {
    struct np_exchange *e = &x->exchanges[which];
    int fires = np_timer_fires(&x->network->events, &e->timer, x->network->now, NP_WORKER, x->first_timer + which);
    x->network->out_of_memory |= fires < 0;
    if (fires <= 0) return;
    e->timer.due = NP_NEVER;
    begin_bucket(x, e);
}

void np_exchanges_start(struct np_exchanges *x) {
    x->tcp->on_arrival = np_exchanges_on_arrival;
    x->tcp->listener = x;
    for (int64_t i = 0; i < x->count; i++) {
        struct np_exchange *e = &x->exchanges[i];
        np_timer_clear(&e->timer);
        e->began = e->start;
        set_exchange_timer(x, e, e->began + current_bucket(x, e)->ready);
    }
}
