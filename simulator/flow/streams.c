/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "streams.h"

#include <math.h>

#include "queues.h"

#define SAME_RATE 1e-6 /* relative difference of rates or queues that counts as none */

void sf_stream_activate(struct sf_run *r, int64_t stream) {
    r->streams[stream].since = r->now;
    r->streams[stream].began = r->now;
    if (sf_max_min_add(&r->rates, (int32_t)stream)) r->out_of_memory = 1;
}

/* Returns the bytes/s that a marked flow gains in a second: a segment per round trip. */
static double gain_of(const struct sf_run *r, int64_t flow) {
    double rtt = 2 * r->s->delay[flow];
    return r->n->segment / (rtt * rtt);
}

void sf_stream_advance(struct sf_run *r, int32_t stream) {
    struct sf_stream *own = &r->streams[stream];
    double rate = r->rates.flows[stream].rate, seconds = r->now - own->since;
    if (own->pace < rate) {
        double gain = gain_of(r, stream), climbing = fmin(seconds, (rate - own->pace) / gain);
        own->left -= (own->pace + gain * climbing / 2) * climbing;
        own->pace = fmin(rate, own->pace + gain * climbing);
        seconds -= climbing;
    }
    own->left -= rate * seconds;
    own->since = r->now;
}

void sf_stream_schedule(struct sf_run *r, int32_t stream) {
    const struct sf_flow *f = &r->rates.flows[stream];
    const struct sf_stream *own = &r->streams[stream];
    double left = fmax(0, own->left), pace = own->pace, seconds = left / f->rate;
    if (f->rate > 0 && pace < f->rate) {
        double gain = gain_of(r, stream), climbed = (f->rate * f->rate - pace * pace) / (2 * gain);
        seconds = left < climbed ? (sqrt(pace * pace + 2 * gain * left) - pace) / gain
                                 : (f->rate - pace) / gain + (left - climbed) / f->rate;
    }
    if (f->rate > 0)
        sf_heap_set(&r->completions, stream, r->now + seconds);
    else
        sf_heap_remove(&r->completions, stream);
}

/* ---- flows ---- */

/* Returns the extra seconds of TCP's first rounds compared with sending at `rate` from the start (Kurose & Ross; Cardwell et
 * al., INFOCOM 2000, without loss): each round sends twice the bytes of the previous one and waits, until a round fills the
 * path. */
static double slow_start(const struct sf_run *r, double bytes, double rate, double rtt) {
    double window = r->n->first_window, cost = 0, sent = 0;
    while (sent + window < bytes && window < rate * rtt) {
        cost += rtt - window / rate;
        sent += window;
        window *= 2;
    }
    return cost;
}

void sf_flow_complete(struct sf_run *r, int64_t flow) {
    const struct sf_streams *s = r->s;
    const struct sf_stream *own = &r->streams[flow];
    double delay = s->delay[flow], rtt = 2 * delay + own->queue_wait, sending = r->now - own->began;
    double extra = sending > 0 ? slow_start(r, s->bytes[flow], s->bytes[flow] / sending, rtt) : 0;
    double last_byte = delay + (own->pace < INFINITY ? sf_queue_delay(r, flow) : own->queue_wait);
    s->completion[flow] = sending + extra + last_byte + (r->n->handshake ? rtt : 0);
    for (int64_t e = s->rows[flow]; e < s->rows[flow + 1]; e++) r->n->sent[s->links[e]] += s->bytes[flow] * s->coefs[e];
}

/* Returns the flow's rate if it were alone. */
static double rate_alone(const struct sf_run *r, int64_t flow) {
    double slowest = r->s->cap[flow];
    for (int64_t e = r->s->rows[flow]; e < r->s->rows[flow + 1]; e++)
        slowest = fmin(slowest, r->n->capacity[r->s->links[e]] / r->s->coefs[e]);
    return slowest;
}

void sf_flow_start(struct sf_run *r, int64_t flow) {
    const struct sf_streams *s = r->s;
    struct sf_stream *own = &r->streams[flow];
    own->queue_wait = sf_queue_delay(r, flow);
    if (s->bytes[flow] > r->n->first_window) {
        own->left = s->bytes[flow];
        own->prev_rate = rate_alone(r, flow);
        sf_stream_activate(r, flow);
        return;
    }
    /* All bytes are in the first window: the flow has no rate, only the queues count. */
    own->began = r->now - s->bytes[flow] / rate_alone(r, flow);
    sf_flow_complete(r, flow);
}

void sf_flow_update_pace(struct sf_run *r, int32_t flow) {
    struct sf_stream *own = &r->streams[flow];
    const struct sf_flow *f = &r->rates.flows[flow];
    if (f->rate < own->prev_rate * (1 - SAME_RATE) && f->bottleneck >= 0) {
        double most = r->n->queue[f->bottleneck], rtt = 2 * r->s->delay[flow];
        double standing = r->s->type[flow] == SF_LOSS_BASED ? SF_LOSS_BASED_FILL * most : fmin(r->n->marking, most);
        double window = f->rate * (rtt + standing / r->n->capacity[f->bottleneck]) / 2;
        int is_new = r->now == own->began;
        if (is_new && r->queue[f->bottleneck] >= standing * (1 - SAME_RATE)) window = fmin(window, r->n->first_window);
        own->pace = fmin(own->pace, window / rtt);
    }
    own->prev_rate = f->rate;
}
