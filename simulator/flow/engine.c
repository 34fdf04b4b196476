/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

#include "heap.h"
#include "shares.h"

#define FILLED 0.8 /* of a port's queue, what Reno and CUBIC keep there */

struct stream {
    double left, since; /* bytes to the next mark (a flow's end, a channel's end of a bucket), as of then */
    double began, waited; /* flows: when it became active, and what queues were in its way */
    double before, pace;  /* flows: the share until now; the rate that TCP's window is good for, INFINITY before it was
                             marked for the first time */
    int64_t mark, marks;  /* channels: the bucket that is under way, and those that wait, counted on */
};

struct job {
    int64_t iteration, open; /* open: buckets and the compute that the iteration still waits for */
    int64_t *missing;        /* of each bucket: channels that have not carried it */
};

struct run {
    const struct nf_network *n;
    const struct nf_streams *s;
    const struct nf_jobs *j;
    struct nf_shares shares;
    struct nf_heap finish, due; /* active streams; jobs' timers */
    struct stream *streams;
    struct job *jobs;
    int64_t *missing, *job_of, *first_timer, *timer_job; /* timers of a job: start, buckets ready, buckets reduced, compute */
    double *queue, *queue_area, *queue_since;
    double now;
    int64_t events;
    int broken;
};

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

static void activate(struct run *r, int64_t stream) {
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
        activate(r, flow);
        return;
    }
    /* all of it goes in the first window: no rate comes of it, only the queues count */
    stream->began = r->now - s->bytes[flow] / emptiest(r, flow);
    over(r, flow);
}

/* ---- jobs ---- */

enum { JOB_START, JOB_COMPUTED, JOB_TIMERS };

static int64_t buckets_of(const struct run *r, int64_t job) {
    return r->j->buckets[job + 1] - r->j->buckets[job];
}

static void set_timer(struct run *r, int64_t job, int64_t which, double time) {
    nf_heap_set(&r->due, (int32_t)(r->first_timer[job] + which), time);
}

static void begin_iteration(struct run *r, int64_t job) {
    int64_t buckets = buckets_of(r, job), first = r->j->buckets[job];
    r->j->began[r->j->first_iteration[job] + r->jobs[job].iteration] = r->now;
    r->jobs[job].open = buckets + 1;
    for (int64_t b = 0; b < buckets; b++)
        set_timer(r, job, JOB_TIMERS + b, r->now + r->j->ready[first + b]);
    set_timer(r, job, JOB_COMPUTED, r->now + r->j->compute[job]);
}

static void one_less(struct run *r, int64_t job) {
    struct job *own = &r->jobs[job];
    if (--own->open)
        return;
    r->j->ended[r->j->first_iteration[job] + own->iteration] = r->now;
    if (++own->iteration < r->j->iterations[job])
        begin_iteration(r, job);
}

static int64_t place_of(const struct run *r, int64_t job, int64_t bucket) {
    return r->j->first_reduced[job] + r->jobs[job].iteration * buckets_of(r, job) + bucket;
}

static double part(const struct run *r, int64_t job, int64_t channel, int64_t bucket) {
    return r->j->share[channel] * r->j->bytes[r->j->buckets[job] + bucket];
}

/* A bucket joins those that wait for the job's channels; they are carried one after the other. */
static void bucket_ready(struct run *r, int64_t job, int64_t bucket) {
    r->j->was_ready[place_of(r, job, bucket)] = r->now;
    r->jobs[job].missing[bucket] = r->j->channels[job + 1] - r->j->channels[job];
    for (int64_t c = r->j->channels[job]; c < r->j->channels[job + 1]; c++) {
        struct stream *stream = &r->streams[r->s->flows + c];
        if (stream->marks++ == 0) {
            stream->mark = bucket;
            stream->left = part(r, job, c, bucket);
            activate(r, r->s->flows + c);
        }
    }
}

static void bucket_reduced(struct run *r, int64_t job, int64_t bucket) {
    r->j->was_reduced[place_of(r, job, bucket)] = r->now;
    one_less(r, job);
}

/* The channel has carried a bucket: on with the next, or rest. Buckets become ready in the order of their numbers. */
static int bucket_carried(struct run *r, int64_t channel) {
    int64_t id = r->s->flows + channel, job = r->job_of[channel];
    struct stream *stream = &r->streams[id];
    int64_t bucket = stream->mark;
    if (--r->jobs[job].missing[bucket] == 0)
        set_timer(r, job, JOB_TIMERS + buckets_of(r, job) + bucket,
                  r->now + r->j->latency[job] + r->j->local[job] * r->j->bytes[r->j->buckets[job] + bucket]);
    r->s->carried[channel] += part(r, job, channel, bucket);
    if (--stream->marks == 0) {
        r->s->busy[channel] += r->now - stream->began;
        return 0;
    }
    stream->mark = bucket + 1;
    stream->left = part(r, job, channel, bucket + 1);
    return 1;
}

static void job_due(struct run *r, int32_t timer) {
    int64_t job = r->timer_job[timer], which = timer - r->first_timer[job], buckets = buckets_of(r, job);
    if (which == JOB_START)
        begin_iteration(r, job);
    else if (which == JOB_COMPUTED)
        one_less(r, job);
    else if (which < JOB_TIMERS + buckets)
        bucket_ready(r, job, which - JOB_TIMERS);
    else
        bucket_reduced(r, job, which - JOB_TIMERS - buckets);
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
    if (stream >= r->s->flows && bucket_carried(r, stream - r->s->flows)) {
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
            job_due(r, timer);
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
                s->carried[c] += part(r, r->job_of[c], c, r->streams[id].mark) - r->streams[id].left;
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

/* ---- laying out ---- */

static int lay_out(struct run *r) {
    const struct nf_streams *s = r->s;
    const struct nf_jobs *j = r->j;
    int64_t streams = s->flows + s->channels, timers = 0, buckets = j->jobs ? j->buckets[j->jobs] : 0;
    for (int64_t job = 0; job < j->jobs; job++)
        timers += JOB_TIMERS + 2 * buckets_of(r, job);
    r->streams = calloc((size_t)streams + 1, sizeof *r->streams);
    r->jobs = calloc((size_t)j->jobs + 1, sizeof *r->jobs);
    r->missing = calloc((size_t)buckets + 1, sizeof *r->missing);
    r->job_of = calloc((size_t)s->channels + 1, sizeof *r->job_of);
    r->first_timer = calloc((size_t)j->jobs + 1, sizeof *r->first_timer);
    r->timer_job = calloc((size_t)timers + 1, sizeof *r->timer_job);
    r->queue = calloc((size_t)r->n->links + 1, sizeof *r->queue);
    r->queue_area = calloc((size_t)r->n->links + 1, sizeof *r->queue_area);
    r->queue_since = calloc((size_t)r->n->links + 1, sizeof *r->queue_since);
    if (nf_heap_open(&r->finish, streams) || nf_heap_open(&r->due, timers) ||
        nf_shares_open(&r->shares, (int32_t)r->n->links, (int32_t)streams, s->rows[streams]) || !r->streams ||
        !r->jobs || !r->missing || !r->job_of || !r->first_timer || !r->timer_job || !r->queue || !r->queue_area ||
        !r->queue_since)
        return -1;
    r->shares.tolerance = r->n->tolerance;
    for (int64_t l = 0; l < r->n->links; l++)
        r->shares.links[l].capacity = r->n->capacity[l];
    for (int64_t i = 0; i < streams; i++)
        r->streams[i].pace = INFINITY;
    for (int64_t i = 0; i < streams; i++)
        r->shares.flows[i] = (struct nf_flow){
            .first = s->rows[i], .last = s->rows[i + 1], .weight = s->weight[i], .cap = s->cap[i]};
    for (int64_t e = 0; e < s->rows[streams]; e++)
        r->shares.entries[e] = (struct nf_entry){s->links[e], 0, s->coefs[e]};
    timers = 0;
    for (int64_t job = 0; job < j->jobs; job++) {
        r->first_timer[job] = timers;
        for (int64_t t = JOB_TIMERS + 2 * buckets_of(r, job); t > 0; t--)
            r->timer_job[timers++] = job;
        r->jobs[job].missing = r->missing + j->buckets[job];
        for (int64_t c = j->channels[job]; c < j->channels[job + 1]; c++)
            r->job_of[c] = job;
        set_timer(r, job, JOB_START, j->start[job]);
    }
    return 0;
}

static void clear_away(struct run *r) {
    nf_shares_close(&r->shares);
    nf_heap_close(&r->finish);
    nf_heap_close(&r->due);
    free(r->streams);
    free(r->jobs);
    free(r->missing);
    free(r->job_of);
    free(r->first_timer);
    free(r->timer_job);
    free(r->queue);
    free(r->queue_area);
    free(r->queue_since);
}

int nf_flow_run(const struct nf_network *network, const struct nf_streams *streams, const struct nf_jobs *jobs,
                double until, double *end, int64_t *events) {
    struct run r = {.n = network, .s = streams, .j = jobs};
    int result = lay_out(&r);
    if (!result) {
        go(&r, until);
        result = r.broken ? -1 : 0;
        close_books(&r);
        *end = r.now;
        *events = r.events;
    }
    clear_away(&r);
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
