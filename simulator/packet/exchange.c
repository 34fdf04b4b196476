/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "exchange.h"

#define PS_PER_SECOND 1e12

static void wait_for(struct np_exchanges *x, struct np_exchange *e, np_time due) {
    uint32_t whose = x->first_timer + (uint32_t)(e - x->exchanges);
    if (due < x->network->now) due = x->network->now;
    x->network->broken |= np_timer_set(&x->network->events, &e->timer, due, NP_WORKER, whose) < 0;
}

static const struct np_portion *portion_of(const struct np_exchanges *x, const struct np_exchange *e) {
    return &x->portions[e->first_bucket + e->bucket];
}

static void release(struct np_exchanges *x, struct np_stream *s, double bytes) {
    s->released++;
    np_tcp_release(x->tcp, s->flow, s->message, (int64_t)(bytes / s->message + 0.999999));
}

static double message_of(const struct np_exchanges *x, const struct np_exchange *e, const struct np_stream *s) {
    return (double)portion_of(x, e)->bytes * s->factor / e->steps;
}

/* Messages that all sources of the stream have delivered the ones before of. */
static void go_on(struct np_exchanges *x, struct np_stream *s) {
    const struct np_exchange *e = &x->exchanges[s->exchange];
    uint32_t may = (uint32_t)e->steps;
    for (int32_t i = 0; i < s->sources; i++) {
        uint32_t there = x->streams[x->sources[s->first_source + i]].arrived + 1;
        if (there < may) may = there;
    }
    while (s->released < may) release(x, s, message_of(x, e, s));
}

static void begin_bucket(struct np_exchanges *x, struct np_exchange *e) {
    double *times = x->times + 2 * (e->first_time + e->iteration * e->buckets + e->bucket);
    times[0] = (double)(e->began + portion_of(x, e)->ready) / PS_PER_SECOND;
    e->running = 1;
    e->done = 0;
    for (int32_t i = 0; i < e->streams; i++) {
        struct np_stream *s = &x->streams[e->first_stream + i];
        double segment = (double)x->tcp->settings->segment_bytes;
        s->base += s->message * s->released;
        s->message = (uint32_t)(message_of(x, e, s) / segment + 0.999999);
        if (!s->message) s->message = 1;
        s->released = s->arrived = 0;
    }
    for (int32_t i = 0; i < e->streams; i++) go_on(x, &x->streams[e->first_stream + i]);
}

static void end_bucket(struct np_exchanges *x, struct np_exchange *e) {
    x->times[2 * (e->first_time + e->iteration * e->buckets + e->bucket) + 1] = (double)x->network->now / PS_PER_SECOND;
    e->running = 0;
    if (++e->bucket == e->buckets) {
        e->bucket = 0;
        np_time least = e->began + e->compute;
        e->began = x->network->now > least ? x->network->now : least;
        if (++e->iteration == e->iterations) return;
    }
    wait_for(x, e, e->began + portion_of(x, e)->ready);
}

void np_exchanges_arrived(void *exchanges, int32_t flow, uint32_t segments) {
    struct np_exchanges *x = exchanges;
    struct np_stream *s = &x->streams[x->tcp->flows[flow].stream];
    struct np_exchange *e = &x->exchanges[s->exchange];
    uint32_t messages = (segments - s->base) / s->message;
    if (!e->running || messages == s->arrived) return;
    s->arrived = messages;
    if (messages == (uint32_t)e->steps && ++e->done == e->streams) {
        end_bucket(x, e);
        return;
    }
    for (int32_t i = 0; i < e->streams; i++) {
        struct np_stream *other = &x->streams[e->first_stream + i];
        for (int32_t k = 0; k < other->sources; k++)
            if (x->sources[other->first_source + k] == (int32_t)(s - x->streams)) go_on(x, other);
    }
}

void np_exchanges_timer(struct np_exchanges *x, uint32_t which) {
    struct np_exchange *e = &x->exchanges[which];
    int rings = np_timer_rings(&x->network->events, &e->timer, x->network->now, NP_WORKER, x->first_timer + which);
    x->network->broken |= rings < 0;
    if (rings <= 0) return;
    e->timer.due = NP_NEVER;
    begin_bucket(x, e);
}

void np_exchanges_start(struct np_exchanges *x) {
    x->tcp->arrived = np_exchanges_arrived;
    x->tcp->who = x;
    for (int64_t i = 0; i < x->count; i++) {
        struct np_exchange *e = &x->exchanges[i];
        np_timer_clear(&e->timer);
        e->began = e->start;
        wait_for(x, e, e->began + portion_of(x, e)->ready);
    }
}
