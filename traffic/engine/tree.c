/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "tree.h"

#include <stdlib.h>

#include "heap.h"
#include "losses.h"

enum {
    CONTROL_PART = 8, /* one channel in 8, at least one, is of the control stream */
    GATHER_LEAST = 8, /* of fewer chunks under way each result is waited for */
    SHORT = 4,        /* round trips that are enough where somebody is missing anyway */
    DOUBT = 32        /* results without a certain round trip, until it is asked whether what went again was needed */
};

static const double NEEDLESS = 0.75; /* of these, came twice: where much is lost, half does */

static void start_stream(struct tree *t, int64_t stream, int64_t from, int64_t count, int64_t rounds) {
    t->streams[stream] = (struct stream){.from = from, .count = count, .limit = 2 * rounds * count, .ready = t->ready + from};
    for (int64_t i = 0; i < count; i++) t->channels[from + i].due = i;
}

int tree_start(struct tree *t, const struct nf_assignment *a, int64_t index, double now) {
    *t = (struct tree){.spec = a->trees[index], .index = index, .epoch = a->epoch, .lanes = a->lanes, .timing = a->timing};
    t->stride = NF_HEADER_BYTES + 4 * t->lanes;
    t->count = t->spec.slots / 2;
    t->oldest = t->newest = NOBODY;
    t->quorum = a->quorum;
    t->workers = a->workers;
    t->deadline = a->quorum_deadline;
    t->ask_at = NF_UNKNOWN;
    size_t count = (size_t)t->count;
    t->channels = calloc(count, sizeof *t->channels);
    t->rows = calloc(count, (size_t)t->stride);
    t->ready = calloc(count, sizeof *t->ready);
    if (!t->channels || !t->rows || !t->ready) return -1;
    int64_t control = t->count == 1 ? 0 : t->count < CONTROL_PART ? 1 : t->count / CONTROL_PART;
    start_stream(t, MAIN, 0, t->count - control, a->rounds);
    start_stream(t, CONTROL, t->count - control, control, a->rounds);
    for (int64_t i = 0; i < t->count; i++) {
        struct header *h = (struct header *)(t->rows + i * t->stride);
        h->version_kind = VERSION_KIND_GRADIENT;
        h->tree = __builtin_bswap16((uint16_t)t->spec.tree);
        h->child = __builtin_bswap16((uint16_t)t->spec.child);
        h->lanes = __builtin_bswap16((uint16_t)t->lanes);
    }
    nf_rtt_start(&t->rtt, &t->timing);
    nf_window_start(&t->window, (enum nf_congestion)a->congestion, t->spec.window, t->timing.late,
                    nf_step((double)a->wire_bytes, t->spec.share));
    nf_pacer_start(&t->pacer, a->rate_mbps, (double)a->wire_bytes, t->spec.share, t->timing.burst, now);
    return 0;
}

void tree_free(struct tree *t) {
    for (int i = 0; i < STREAMS; i++)
        while (t->streams[i].first) {
            struct segment *s = t->streams[i].first;
            t->streams[i].first = s->next;
            free(s);
        }
    free(t->channels);
    free(t->rows);
    free(t->ready);
}

static void unlink_channel(struct tree *t, int32_t i) {
    struct channel *c = &t->channels[i];
    if (c->previous == NOBODY)
        t->oldest = c->next;
    else
        t->channels[c->previous].next = c->next;
    if (c->next == NOBODY)
        t->newest = c->previous;
    else
        t->channels[c->next].previous = c->previous;
}

static void link_channel(struct tree *t, int32_t i, double now) {
    struct channel *c = &t->channels[i];
    c->sent_at = now;
    c->previous = t->newest;
    c->next = NOBODY;
    if (t->newest == NOBODY)
        t->oldest = i;
    else
        t->channels[t->newest].next = i;
    t->newest = i;
}

/* Each of a segment's first places meets a channel of its own; later ones follow the results of these. */
static void make_ready(struct tree *t, struct stream *r, const struct segment *s) {
    int64_t stop = s->base + (s->count < r->count ? s->count : r->count);
    for (int64_t place = s->base; place < stop; place++) {
        const struct channel *c = &t->channels[r->from + place % r->count];
        if (!c->busy && c->due == place) heap_push(r->ready, &r->ready_count, place);
    }
}

int tree_append(struct tree *t, struct segment *s) {
    struct stream *r = stream_of(t, s->stream);
    if (s->count > r->limit - r->end) return 0;
    s->base = r->end;
    s->left = s->count;
    s->next = NULL;
    s->back = NF_UNKNOWN;
    if (r->last)
        r->last->next = s;
    else
        r->first = s;
    r->last = s;
    r->end += s->count;
    make_ready(t, r, s);
    return 1;
}

void tree_unhold(struct tree *t, const struct nf_call *call, int64_t part) {
    for (struct segment *s = t->streams[MAIN].first; s; s = s->next)
        if (s->call == call && s->part == part) s->held = 0;
}

static void take_off(struct stream *r, struct segment *s) {
    struct segment **at = &r->first, *before = NULL;
    while (*at != s) {
        before = *at;
        at = &(*at)->next;
    }
    *at = s->next;
    if (r->last == s) r->last = before;
}

/* The number of the chunk that a channel awaits or is to send next: c and c + A/2 follow each other on a channel. */
static int64_t chunk_due(const struct tree *t, const struct stream *r, int64_t channel) {
    return t->channels[channel].due / r->count * t->count + channel;
}

static void look_at_count(struct tree *t, const struct segment *s, const struct header *h) {
    int64_t count = h->reserved & COUNT;
    if (s->hurry && !s->hurry->count && count < t->workers) t->ask_at = 0; /* others under way have less time from now on */
    if (s->hurry) s->hurry->count = count < t->workers ? count : 0;
    t->late += h->flags & SEAL && __builtin_bswap16(h->child) == t->spec.child;
}

/* With a quorum a result may come before this worker sent its part: then that need not go any more. */
static struct segment *skip_ready(struct stream *r, int64_t place) {
    struct segment *s = r->first;
    while (s && place >= s->base + s->count && !s->held) s = s->next;
    if (!s || s->held || !s->hurry || place < s->base) return NULL;
    if (!heap_remove(r->ready, &r->ready_count, place)) return NULL;
    if (place >= r->highest) r->highest = place + 1;
    return s;
}

/* The chunk under way on a channel is back. */
static void take_back(struct tree *t, struct stream *r, int32_t channel, int marked, double now) {
    struct channel *c = &t->channels[channel];
    struct segment *s = c->segment;
    c->busy = 0;
    unlink_channel(t, channel);
    t->under_way--;
    r->under_way--;
    double trip = now - c->sent_at, whole = now - c->begun_at;
    t->doubt.count++;
    if (t->doubt.whole == 0 || whole < t->doubt.whole) t->doubt.whole = whole;
    c->before_resent = c->resent && !c->asked;
    if (c->resent) {
        if ((t->rtt.smoothed == 0 || trip >= t->rtt.least) && c->sent_at > t->again_back) t->again_back = c->sent_at;
    } else {
        if (c->sent_at > t->again_at) {
            t->found.fresh++;
            t->found.rtt_sum += trip;
        } else if (t->found.waited == 0 || trip < t->found.waited) {
            t->found.waited = trip;
        }
        if (c->sent_at >= s->back) {
            t->found.judged++;
            t->found.judged_sum += trip;
        }
        if (c->sent_at > t->newest_back) t->newest_back = c->sent_at;
    }
    if (now < s->back) s->back = now;
    t->found.count++;
    t->found.marked += marked;
    t->results++;
    t->marked += marked;
}

struct segment *tree_accept(struct tree *t, const struct header *h, int marked, double now, int64_t *chunk) {
    uint32_t tag = __builtin_bswap32(h->tag);
    if (h->version_kind != VERSION_KIND_RESULT || __builtin_bswap16(h->lanes) != t->lanes || tag >> ROUND_BITS != t->epoch)
        return NULL;
    int64_t slot = __builtin_bswap16(h->slot);
    if (slot >= t->spec.slots) return NULL;
    int64_t number = (int64_t)(tag & ((1u << ROUND_BITS) - 1)) * t->spec.slots + slot;
    int64_t channel = number & (t->count - 1);
    struct stream *r = &t->streams[channel < t->streams[MAIN].count ? MAIN : CONTROL];
    struct channel *c = &t->channels[channel];
    int64_t due = chunk_due(t, r, channel);
    if (number == due - t->count && c->before_resent) {
        c->before_resent = 0;
        t->doubt.twice++;
    }
    if (number != due) return NULL;
    if (t->quorum && h->flags & LAPPED) {
        t->lapped |= c->busy;
        return NULL;
    }
    struct segment *s = c->busy ? c->segment : t->quorum ? skip_ready(r, c->due) : NULL;
    if (!s) return NULL;
    *chunk = c->due - s->base;
    if (t->quorum) look_at_count(t, s, h);
    if (c->busy) take_back(t, r, (int32_t)channel, marked || h->flags & CONGESTION, now);
    c->due += r->count;
    if (c->due < r->end) heap_push(r->ready, &r->ready_count, c->due);
    if (--s->left == 0) take_off(r, s);
    return s;
}

/* Where all goes again before it can be back, no chunk ever tells how long the way is. But then almost all come twice, as
 * nothing was lost (RFC 4015's idea): the quickest of many, since it went first, met no other worker's loss. */
static void doubt_round_trip(struct tree *t, int known) {
    if (!known && t->doubt.count < DOUBT) return;
    if (!known && (double)t->doubt.twice >= NEEDLESS * (double)t->doubt.count) nf_rtt_longer(&t->rtt, &t->timing, t->doubt.whole);
    t->doubt = (struct doubt){0};
}

/* Round trips and marks count once in a window, as the gains of RFC 6298 and RFC 8257 want it: a sample for each turn would
 * make the timeout forget within one round trip how long a way can take. */
static void account_window(struct tree *t) {
    struct found f = t->found;
    t->found = (struct found){0};
    doubt_round_trip(t, f.fresh > 0);
    if (f.fresh)
        nf_rtt_sample(&t->rtt, &t->timing, f.rtt_sum / (double)f.fresh);
    else if (f.waited > 0)
        nf_rtt_waited(&t->rtt, &t->timing, f.waited);
    struct nf_came came = {f.count, f.marked, NF_UNKNOWN, t->rtt.least};
    if (f.judged) came.delay = f.judged_sum / (double)f.judged - t->rtt.least;
    nf_window_results(&t->window, &came);
}

void tree_account(struct tree *t, double now) {
    if (t->found.count == t->accounted) return;
    nf_rtt_progress(&t->rtt);
    t->probed_at = 0;
    t->probe_due = 0;
    t->tail_probed = 0;
    t->active_at = now;
    int whole = t->found.count >= nf_window_size(&t->window) || t->under_way == 0;
    if (whole || t->rtt.smoothed == 0) account_window(t);
    t->accounted = t->found.count;
}

/* The segment of a place, or one before it that is held. */
static struct segment *segment_of(const struct stream *r, int64_t place) {
    struct segment *s = r->first;
    while (place >= s->base + s->count && !s->held) s = s->next;
    return s;
}

static struct nf_out out_of(const struct tree *t, int64_t channel) {
    return (struct nf_out){t->rows + channel * t->stride, t->spec.endpoint};
}

/* How long a chunk waits for all workers, before it says that its deadline is over. Where sums of the same call went without
 * some, a round trip or so is enough for those who are there; if the quorum just holds, those who are there are all in it
 * whatever is said. */
static double patience_with(const struct tree *t, const struct segment *s) {
    if (!t->quorum || !s->hurry) return NF_UNKNOWN;
    if (!s->hurry->count) return t->deadline;
    if (s->hurry->count <= t->quorum) return 0;
    double short_one = SHORT * (t->rtt.smoothed + t->timing.least_reordering);
    return short_one < t->deadline ? short_one : t->deadline;
}

static void begin_chunk(struct tree *t, struct stream *r, int64_t channel, struct segment *s, fill_chunk *fill, double now) {
    struct channel *c = &t->channels[channel];
    struct header *h = (struct header *)(t->rows + channel * t->stride);
    int64_t chunk = chunk_due(t, r, channel);
    h->tag = __builtin_bswap32((uint32_t)(t->epoch << ROUND_BITS | chunk / t->spec.slots));
    h->slot = __builtin_bswap16((uint16_t)(chunk & (t->spec.slots - 1)));
    h->flags = h->exponent = 0;
    h->reserved = t->quorum > 0;
    fill(t, s, c->due - s->base, h);
    if (t->quorum) h->flags |= QUORUM;
    c->segment = s;
    c->busy = 1;
    c->resent = c->asked = 0;
    c->begun_at = now;
    double patience = patience_with(t, s);
    if (patience == 0) {
        h->flags |= SEAL;
        c->asked = 1;
    } else if (now + patience < t->ask_at) {
        t->ask_at = now + patience;
    }
    link_channel(t, (int32_t)channel, now);
    t->under_way++;
    r->under_way++;
}

static int64_t send_again(struct tree *t, struct nf_out *out, int64_t room, double now) {
    int64_t n = 0;
    while (n < room && losses_lacking(t)) {
        int32_t i = t->oldest;
        if (!losses_overtaken(t)) t->probe_due = 0;
        unlink_channel(t, i);
        link_channel(t, i, now);
        t->channels[i].resent = 1;
        t->again_at = now;
        t->retransmits++;
        out[n++] = out_of(t, i);
    }
    return n;
}

/* Chunks that have waited long enough go once more and say so; no loss, and nothing for the window. */
static int64_t send_asking(struct tree *t, struct nf_out *out, int64_t room, double now) {
    if (now < t->ask_at) return 0;
    int64_t n = 0;
    double next = NF_UNKNOWN;
    for (int32_t i = t->oldest, newest = t->newest; i != NOBODY;) {
        struct channel *c = &t->channels[i];
        int32_t following = i == newest ? NOBODY : c->next;
        double due = c->asked ? NF_UNKNOWN : c->begun_at + patience_with(t, c->segment);
        if (due <= now && n < room) {
            ((struct header *)(t->rows + i * t->stride))->flags |= SEAL;
            c->asked = c->resent = 1;
            unlink_channel(t, i);
            link_channel(t, i, now);
            out[n++] = out_of(t, i);
        } else if (due < next) {
            next = due;
        }
        i = following;
    }
    t->ask_at = next;
    return n;
}

/* Chunks of a stream that go for the first time, as the rules of section 5.1 want it. */
static int64_t send_new(struct tree *t, struct stream *r, fill_chunk *fill, struct nf_out *out, int64_t room, int64_t allowance,
                        double now) {
    int64_t n = 0, window = nf_window_size(&t->window);
    while (n < room && r->ready_count) {
        int64_t place = r->ready[0];
        if (place >= r->highest && r->under_way >= window) break;
        struct segment *s = segment_of(r, place);
        if (s->held) break;
        if (n >= allowance && s->count > 1) { /* a part of one chunk is a question, not a stream: it goes at once */
            t->held_back = 1;
            break;
        }
        heap_pop(r->ready, &r->ready_count);
        int64_t channel = r->from + place % r->count;
        begin_chunk(t, r, channel, s, fill, now);
        if (place >= r->highest) r->highest = place + 1;
        out[n++] = out_of(t, channel);
    }
    return n;
}

int64_t tree_send(struct tree *t, fill_chunk *fill, struct nf_out *out, int64_t room, double now) {
    losses_look(t, now);
    int64_t allowance = nf_pacer_allowance(&t->pacer, now);
    int64_t n = t->quorum ? send_asking(t, out, room, now) : 0;
    n += send_again(t, out + n, room - n < allowance ? room - n : allowance, now);
    t->held_back = n >= allowance && losses_lacking(t);
    n += send_new(t, &t->streams[CONTROL], fill, out + n, room - n, allowance - n, now);
    n += send_new(t, &t->streams[MAIN], fill, out + n, room - n, allowance - n, now);
    if (n) t->active_at = now;
    t->pacer.tokens -= (double)n;
    return n;
}

double tree_next(const struct tree *t, double now) {
    double next = t->held_back ? now + nf_pacer_wait(&t->pacer) : NF_UNKNOWN;
    if (t->oldest == NOBODY) return next;
    double due = losses_next(t);
    due = t->ask_at < due ? t->ask_at : due;
    return due < next ? due : next;
}

double tree_gather(const struct tree *t) {
    if (t->pacer.per_second == 0 || t->under_way < GATHER_LEAST) return 0;
    return (double)t->under_way / (4 * t->pacer.per_second);
}
