/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <math.h>

#include "state.h"

#define FILLED 0.8 /* of a port's queue, what Reno and CUBIC keep there */

/* ---- queues ---- */

/* Bytes that wait at a link: what those who are held up there keep, and packets that come at the same time. */
static double queue_of(const struct run *r, int32_t link) {
    const struct nf_link *l = &r->shares.links[link];
    double load = l->load / l->capacity, most = r->n->queue[link], standing = 0, window = 0;
    for (int32_t i = 0; load > 0.99 && i < l->count; i++) {
        int32_t flow = l->members[i].flow;
        const struct nf_flow *f = &r->shares.flows[flow];
        if (f->bottleneck != link)
            continue;
        switch ((enum nf_kind)r->s->kind[flow]) {
        case NF_RELIEVED: /* a flow that was never marked goes as fast as it came */
            if (r->streams[flow].pace < INFINITY || flow >= r->s->flows)
                standing = fmax(standing, r->n->marking);
            break;
        case NF_FILLING:
            standing = fmax(standing, FILLED * most);
            break;
        case NF_WINDOW:
            window += fmax(0, r->s->window[flow] - f->rate * 2 * r->s->delay[flow]) * l->members[i].coef;
            break;
        case NF_STEPS:
            break;
        }
    }
    load = fmin(load, 0.99);
    return fmin(most, fmax(fmax(standing, window), load / (2 * (1 - load)) * r->n->segment));
}

static void look_at_queue(struct run *r, int32_t link) {
    double queue = queue_of(r, link);
    r->queue_area[link] += r->queue[link] * (r->now - r->queue_since[link]);
    r->queue_since[link] = r->now;
    r->queue[link] = queue;
    if (queue > r->n->queue_max[link])
        r->n->queue_max[link] = queue;
}

static double waiting(const struct run *r, int64_t flow) {
    double seconds = 0;
    for (int64_t e = r->s->rows[flow]; e < r->s->rows[flow + 1]; e++)
        seconds += r->queue[r->s->links[e]] / r->n->capacity[r->s->links[e]];
    return seconds;
}

/* ---- flows ---- */

/* What TCP's first rounds cost over sending at `rate` from the start (Kurose & Ross; Cardwell et al., INFOCOM 2000,
 * without loss): each round sends twice the one before and then waits, until a round fills the way. */
static double slow_start(const struct run *r, double bytes, double rate, double rtt) {
    double window = r->n->first_window, cost = 0, sent = 0;
    while (sent + window < bytes && window < rate * rtt) {
        cost += rtt - window / rate;
        sent += window;
        window *= 2;
    }
    return cost;
}

static void over(struct run *r, int64_t flow) {
    const struct nf_streams *s = r->s;
    const struct stream *own = &r->streams[flow];
    double delay = s->delay[flow], rtt = 2 * delay + own->waited, sending = r->now - own->began;
    double extra = sending > 0 ? slow_start(r, s->bytes[flow], s->bytes[flow] / sending, rtt) : 0;
    double way = delay + (own->pace < INFINITY ? waiting(r, flow) : own->waited); /* of the last byte */
    s->completion[flow] = sending + extra + way + (r->n->handshake ? rtt : 0);
    for (int64_t e = s->rows[flow]; e < s->rows[flow + 1]; e++)
        r->n->sent[s->links[e]] += s->bytes[flow] * s->coefs[e];
}

static double emptiest(const struct run *r, int64_t flow) {
    double slowest = r->s->cap[flow];
    for (int64_t e = r->s->rows[flow]; e < r->s->rows[flow + 1]; e++)
        slowest = fmin(slowest, r->n->capacity[r->s->links[e]] / r->s->coefs[e]);
    return slowest;
}

void nf_activate(struct run *r, int64_t stream) {
    r->streams[stream].since = r->now;
    r->streams[stream].began = r->now;
    if (nf_shares_add(&r->shares, (int32_t)stream))
        r->broken = 1;
}

static void arrive(struct run *r, int64_t flow) {
    const struct nf_streams *s = r->s;
    struct stream *stream = &r->streams[flow];
    stream->waited = waiting(r, flow);
    if (s->bytes[flow] > r->n->first_window) {
        stream->left = s->bytes[flow];
        stream->before = emptiest(r, flow);
        nf_activate(r, flow);
        return;
    }
    /* all of it goes in the first window: no rate comes of it, only the queues count */
    stream->began = r->now - s->bytes[flow] / emptiest(r, flow);
    over(r, flow);
}

/* ---- time ---- */

/* Bytes/s that a flow gains in a second once it was marked: a segment a round trip. */
static double gain_of(const struct run *r, int64_t flow) {
    double rtt = 2 * r->s->delay[flow];
    return r->n->segment / (rtt * rtt);
}

static void foresee(struct run *r, int32_t stream) {
    const struct nf_flow *f = &r->shares.flows[stream];
    const struct stream *own = &r->streams[stream];
    double left = fmax(0, own->left), pace = own->pace, seconds = left / f->rate;
    if (f->rate > 0 && pace < f->rate) {
        double gain = gain_of(r, stream), climbed = (f->rate * f->rate - pace * pace) / (2 * gain);
        seconds = left < climbed ? (sqrt(pace * pace + 2 * gain * left) - pace) / gain
                                 : (f->rate - pace) / gain + (left - climbed) / f->rate;
    }
    if (f->rate > 0)
        nf_heap_set(&r->finish, stream, r->now + seconds);
    else
        nf_heap_drop(&r->finish, stream);
}

static void advance(struct run *r, int32_t stream) {
    struct stream *own = &r->streams[stream];
    double rate = r->shares.flows[stream].rate, seconds = r->now - own->since;
    if (own->pace < rate) {
        double gain = gain_of(r, stream), climbing = fmin(seconds, (rate - own->pace) / gain);
        own->left -= (own->pace + gain * climbing / 2) * climbing;
        own->pace = fmin(rate, own->pace + gain * climbing);
        seconds -= climbing;
    }
    own->left -= rate * seconds;
    own->since = r->now;
}

/* A TCP flow gets another share. Where it is less than before, or than what the empty way gives, a queue has grown until
 * the window was halved; what is left of it is worth more without the queue. (DCTCP halves as Reno does while it is new:
 * its estimate of marks begins at 1 and forgets over 16 round trips.) Where a queue stood already, a new flow is marked in
 * its first round. */
static void pace(struct run *r, int32_t flow) {
    struct stream *own = &r->streams[flow];
    const struct nf_flow *f = &r->shares.flows[flow];
    if (f->rate < own->before * (1 - 1e-6) && f->bottleneck >= 0) {
        double most = r->n->queue[f->bottleneck], rtt = 2 * r->s->delay[flow];
        double standing = r->s->kind[flow] == NF_FILLING ? FILLED * most : fmin(r->n->marking, most);
        double left = f->rate * (rtt + standing / r->n->capacity[f->bottleneck]) / 2;
        if (r->now == own->began && r->queue[f->bottleneck] >= standing * (1 - 1e-6))
            left = fmin(left, r->n->first_window);
        own->pace = fmin(own->pace, left / rtt);
    }
    own->before = f->rate;
}

static void finished(struct run *r, int32_t stream) {
    advance(r, stream);
    if (stream >= r->s->flows && nf_bucket_carried(r, stream - r->s->flows)) {
        foresee(r, stream);
        return;
    }
    nf_heap_drop(&r->finish, stream);
    nf_shares_remove(&r->shares, stream);
    if (stream < r->s->flows)
        over(r, stream);
}

/* New rates for all whom the events of this moment concern. */
static void share_out(struct run *r) {
    struct nf_shares *shares = &r->shares;
    if (!shares->touched_count && !shares->chosen_count)
        return;
    nf_shares_solve(shares);
    for (int32_t i = 0; i < shares->chosen_count; i++)
        if (shares->flows[shares->chosen[i]].active)
            advance(r, shares->chosen[i]);
    nf_shares_commit(shares);
    for (int32_t i = 0; i < shares->chosen_count; i++) {
        int32_t id = shares->chosen[i];
        if (!shares->flows[id].active)
            continue;
        if (id < r->s->flows)
            pace(r, id);
        foresee(r, id);
        double *fastest = id >= r->s->flows ? &r->s->fastest[id - r->s->flows] : NULL;
        if (fastest && shares->flows[id].rate > *fastest)
            *fastest = shares->flows[id].rate;
    }
    for (int32_t i = 0; i < shares->touched_count; i++)
        look_at_queue(r, shares->touched[i]);
}

static void go(struct run *r, double until) {
    int64_t next = 0;
    for (;;) {
        double arrival = next < r->s->flows ? r->s->start[next] : INFINITY;
        double finish = r->finish.count ? r->finish.time[r->finish.order[0]] : INFINITY;
        double due = r->due.count ? r->due.time[r->due.order[0]] : INFINITY;
        double now = fmin(arrival, fmin(finish, due));
        if (!(now < INFINITY) || now > until || r->broken)
            break;
        r->now = now;
        nf_shares_begin(&r->shares);
        while (r->finish.count && r->finish.time[r->finish.order[0]] <= now) {
            r->events++;
            finished(r, r->finish.order[0]);
        }
        while (r->due.count && r->due.time[r->due.order[0]] <= now) {
            int32_t timer = r->due.order[0];
            r->events++;
            nf_heap_drop(&r->due, timer);
            nf_job_due(r, timer);
        }
        for (; next < r->s->flows && r->s->start[next] <= now; next++) {
            r->events++;
            arrive(r, next);
        }
        share_out(r);
    }
    if (until < INFINITY)
        r->now = until;
}

/* What channels and flows that are not over have carried, and the queues' means. */
static void close_books(struct run *r) {
    const struct nf_streams *s = r->s;
    for (int64_t id = 0; id < s->flows + s->channels; id++) {
        double bytes = 0;
        int active = r->shares.flows[id].active;
        if (active)
            advance(r, (int32_t)id);
        if (id >= s->flows) {
            int64_t c = id - s->flows;
            if (active) {
                s->carried[c] += nf_part(r, r->job_of[c], c, r->streams[id].mark) - r->streams[id].left;
                s->busy[c] += r->now - r->streams[id].began;
            }
            bytes = s->carried[c];
        } else if (active) {
            bytes = s->bytes[id] - r->streams[id].left;
        }
        for (int64_t e = s->rows[id]; e < s->rows[id + 1]; e++)
            r->n->sent[s->links[e]] += bytes * s->coefs[e];
    }
    for (int64_t l = 0; l < r->n->links; l++) {
        r->queue_area[l] += r->queue[l] * (r->now - r->queue_since[l]);
        r->n->queue_mean[l] = r->now > 0 ? r->queue_area[l] / r->now : 0;
    }
}

/* ---- calls from outside ---- */

int nf_flow_run(const struct nf_network *network, const struct nf_streams *streams, const struct nf_jobs *jobs,
                double until, double *end, int64_t *events) {
    struct run r = {.n = network, .s = streams, .j = jobs};
    int result = nf_state_open(&r);
    if (!result) {
        go(&r, until);
        result = r.broken ? -1 : 0;
        close_books(&r);
        *end = r.now;
        *events = r.events;
    }
    nf_state_close(&r);
    return result;
}

int nf_flow_rates(int64_t links, const double *capacity, int64_t flows, const int64_t *rows, const int32_t *row_links,
                  const double *coefs, const double *weight, const double *cap, int64_t leaving, double *rate,
                  int32_t *bottleneck) {
    struct nf_shares s;
    if (nf_shares_open(&s, (int32_t)links, (int32_t)flows, rows[flows]))
        return -1;
    int result = 0;
    for (int64_t l = 0; l < links; l++)
        s.links[l].capacity = capacity[l];
    for (int64_t e = 0; e < rows[flows]; e++)
        s.entries[e] = (struct nf_entry){row_links[e], 0, coefs[e]};
    for (int64_t f = 0; f < flows && !result; f++) { /* one by one: so that what is local is what is tested */
        s.flows[f] = (struct nf_flow){.first = rows[f], .last = rows[f + 1], .weight = weight[f], .cap = cap[f]};
        nf_shares_begin(&s);
        result = nf_shares_add(&s, (int32_t)f);
        nf_shares_solve(&s);
        nf_shares_commit(&s);
    }
    for (int32_t f = 0; f < leaving && !result; f++) {
        nf_shares_begin(&s);
        nf_shares_remove(&s, f);
        nf_shares_solve(&s);
        nf_shares_commit(&s);
        s.flows[f].rate = 0;
    }
    for (int64_t f = 0; f < flows; f++) {
        rate[f] = s.flows[f].rate;
        bottleneck[f] = s.flows[f].bottleneck;
    }
    nf_shares_close(&s);
    return result;
}
