/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "tree.h"

#include <stdlib.h>

#include "acks.h"
#include "heap.h"
#include "in_flight.h"
#include "loss_detection.h"
#include "seal.h"

enum {
    CONTROL_FRACTION = 8, /* one channel in 8, at least one, is the control stream's */
    GATHER_CHANNELS = 16, /* with fewer channels there is no stream for gathers */
    MIN_COALESCED = 8     /* with fewer chunks in flight results are read at once */
};

/* A timer and the wakeup that it causes take longer than a shorter delay saves. */
static const double MIN_COALESCING_S = 100e-6;

static void init_stream(struct tree *t, enum stream_id id, int64_t from, int64_t count, int64_t rounds) {
    t->streams[id] = (struct stream){.from = from, .count = count, .limit = 2 * rounds * count, .ready = t->ready + from};
    for (int64_t i = 0; i < count; i++) t->channels[from + i].next_place = i;
}

int tree_init(struct tree *t, const struct nf_assignment *a, int64_t index, double now) {
    *t = (struct tree){.spec = a->trees[index], .index = index, .epoch = a->epoch, .lanes = a->lanes, .timing = a->timing};
    t->packet_bytes = NF_HEADER_BYTES + 4 * t->lanes;
    t->channel_count = t->spec.slots / 2;
    for (int i = 0; i < FLIGHTS; i++) t->flights[i].oldest = t->flights[i].newest = NO_CHANNEL;
    t->rank = a->rank;
    t->short_cost = 1 - 4 * (double)a->lanes / (double)a->wire_bytes;
    t->quorum = a->quorum;
    t->workers = a->workers;
    t->seal_timeout = a->quorum_deadline;
    t->seal_due_at = NF_UNKNOWN;
    size_t count = (size_t)t->channel_count;
    t->channels = calloc(count, sizeof *t->channels);
    t->packets = calloc(count, (size_t)t->packet_bytes);
    t->ready = calloc(count, sizeof *t->ready);
    if (!t->channels || !t->packets || !t->ready) return -1;
    int64_t gather = a->targets == NF_TARGETS && t->channel_count >= GATHER_CHANNELS ? t->channel_count / 2 : 0;
    int64_t others = t->channel_count - gather;
    int64_t control = others == 1 ? 0 : others < CONTROL_FRACTION ? 1 : others / CONTROL_FRACTION;
    init_stream(t, MAIN, 0, others - control, a->rounds);
    init_stream(t, CONTROL, others - control, control, a->rounds);
    init_stream(t, GATHER, others, gather, a->rounds);
    for (int64_t i = 0; i < t->channel_count; i++) {
        struct header *h = packet_of(t, i);
        h->version_kind = VERSION_KIND_GRADIENT;
        h->tree = __builtin_bswap16((uint16_t)t->spec.tree);
        h->child = __builtin_bswap16((uint16_t)t->spec.child);
        h->lanes = __builtin_bswap16((uint16_t)t->lanes);
    }
    nf_rtt_init(&t->rtt, &t->timing);
    struct nf_window_settings settings = {t->spec.window, t->timing.delay_threshold,
                                          nf_window_increase((double)a->wire_bytes, t->spec.share)};
    nf_window_init(&t->window, (enum nf_congestion)a->congestion, &settings);
    nf_pacer_init(&t->pacer, a->rate_mbps, (double)a->wire_bytes, t->spec.share, t->timing.pacing_burst, now);
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
    free(t->packets);
    free(t->ready);
}

/* ---- segments ---- */

/* Each of a segment's first places has a channel of its own; later ones follow the results of these. */
static void make_ready(struct tree *t, struct stream *r, const struct segment *s) {
    int64_t end = s->base + (s->count < r->count ? s->count : r->count);
    for (int64_t place = s->base; place < end; place++) {
        const struct channel *c = &t->channels[r->from + place % r->count];
        if (!c->is_in_flight && c->next_place == place) heap_push(r->ready, &r->ready_count, place);
    }
}

int tree_append(struct tree *t, struct segment *s) {
    struct stream *r = stream_of(t, s->ops->stream);
    if (s->count > r->limit - r->end) return 0;
    s->base = r->end;
    s->remaining = s->count;
    s->next = NULL;
    s->first_acked_at = NF_UNKNOWN;
    if (r->last)
        r->last->next = s;
    else
        r->first = s;
    r->last = s;
    r->end += s->count;
    make_ready(t, r, s);
    return 1;
}

void tree_release(struct tree *t, const void *owner, const struct part_ops *ops) {
    for (struct segment *s = t->streams[MAIN].first; s; s = s->next)
        if (s->owner == owner && s->ops == ops) s->is_held = 0;
}

static void remove_segment(struct stream *r, struct segment *s) {
    struct segment **at = &r->first, *before = NULL;
    while (*at != s) {
        before = *at;
        at = &(*at)->next;
    }
    *at = s->next;
    if (r->last == s) r->last = before;
}

/* Returns the segment of a place, or an earlier one that is held. */
static struct segment *segment_of(const struct stream *r, int64_t place) {
    struct segment *s = r->first;
    while (place >= s->base + s->count && !s->is_held) s = s->next;
    return s;
}

/* Returns the chunk number that a channel awaits or sends next: c and c + A/2 follow each other on a channel. */
static int64_t chunk_number(const struct tree *t, const struct stream *r, int64_t channel) {
    return t->channels[channel].next_place / r->count * t->channel_count + channel;
}

/* ---- results ---- */

static void on_chunk_acked(struct tree *t, struct stream *r, int32_t channel, int marked, double now) {
    struct channel *c = &t->channels[channel];
    c->is_in_flight = 0;
    in_flight_remove(t, channel);
    t->in_flight--;
    r->in_flight--;
    c->prev_retransmitted = c->is_retransmitted && !c->seal_requested;
    acks_record(t, channel, marked, now);
}

static struct stream *stream_of_channel(struct tree *t, int64_t channel) {
    if (channel < t->streams[MAIN].count) return &t->streams[MAIN];
    return &t->streams[channel < t->streams[GATHER].from ? CONTROL : GATHER];
}

/* Returns whether a result has the target of this worker's packet, and lanes if this worker wants them. A short result without D
 * has lanes 0. */
static int is_answer(const struct tree *t, const struct header *own, const struct header *h, int64_t length) {
    if (h->lanes != own->lanes) return 0;
    return length == t->packet_bytes || is_short(h) || !target_wants(own, t->rank);
}

struct segment *tree_on_result(struct tree *t, const struct header *h, int64_t length, int marked, double now, int64_t *chunk) {
    uint32_t tag = __builtin_bswap32(h->tag);
    if (h->version_kind != VERSION_KIND_RESULT || tag >> ROUND_BITS != t->epoch) return NULL;
    int64_t slot = __builtin_bswap16(h->slot);
    if (slot >= t->spec.slots) return NULL;
    int64_t number = (int64_t)(tag & ((1u << ROUND_BITS) - 1)) * t->spec.slots + slot;
    int64_t channel = number & (t->channel_count - 1);
    struct stream *r = stream_of_channel(t, channel);
    struct channel *c = &t->channels[channel];
    int64_t awaited = chunk_number(t, r, channel);
    if (number == awaited - t->channel_count && c->prev_retransmitted) {
        c->prev_retransmitted = 0;
        t->spurious.duplicates++;
    }
    if (number != awaited || !is_answer(t, packet_of(t, channel), h, length)) return NULL;
    if (t->quorum && h->flags & FLAG_SLOT_REUSED) {
        t->slot_reused |= c->is_in_flight;
        return NULL;
    }
    struct segment *s = c->is_in_flight ? c->segment : t->quorum ? accept_early_result(r, c->next_place) : NULL;
    if (!s) return NULL;
    *chunk = c->next_place - s->base;
    if (t->quorum) update_contributor_count(t, s, h);
    if (c->is_in_flight) on_chunk_acked(t, r, (int32_t)channel, marked || h->flags & FLAG_CONGESTION, now);
    c->next_place += r->count;
    if (c->next_place < r->end) heap_push(r->ready, &r->ready_count, c->next_place);
    if (--s->remaining == 0) remove_segment(r, s);
    return s;
}

void tree_update_window(struct tree *t, double now) {
    if (t->acks.count == t->accounted) return;
    nf_rtt_reset_backoff(&t->rtt);
    t->probed_at = 0;
    t->probe_due = 0;
    t->tail_probed = 0;
    t->last_activity_at = now;
    acks_update_window(t);
    t->accounted = t->acks.count;
}

/* ---- sending ---- */

/* Returns a packet to send, for which the pacer's tokens are taken. */
static struct nf_out take_packet(struct tree *t, int64_t channel) {
    const struct header *h = packet_of(t, channel);
    struct nf_out out = {(const uint8_t *)h, t->spec.endpoint, is_short(h) ? NF_HEADER_BYTES : t->packet_bytes};
    if (is_targeted(h))
        nf_pacer_charge(&t->pacer, is_short(h) ? t->short_cost : 1, target_wants(h, t->rank) ? 1 : t->short_cost);
    else
        nf_pacer_charge(&t->pacer, 1, 1);
    return out;
}

static void start_chunk(struct tree *t, struct stream *r, int64_t channel, struct segment *s, double now) {
    struct channel *c = &t->channels[channel];
    struct header *h = packet_of(t, channel);
    int64_t chunk = chunk_number(t, r, channel);
    h->tag = __builtin_bswap32((uint32_t)(t->epoch << ROUND_BITS | chunk / t->spec.slots));
    h->slot = __builtin_bswap16((uint16_t)(chunk & (t->spec.slots - 1)));
    h->flags = h->exponent = 0;
    h->lanes = __builtin_bswap16((uint16_t)t->lanes);
    h->reserved = t->quorum > 0; /* one contribution */
    s->ops->fill(t, s, c->next_place - s->base, h);
    if (t->quorum) h->flags |= FLAG_QUORUM;
    c->segment = s;
    c->is_in_flight = 1;
    c->is_retransmitted = c->seal_requested = 0;
    c->first_sent_at = now;
    double timeout = seal_timeout(t, s);
    if (timeout == 0) {
        h->flags |= FLAG_SEAL;
        c->seal_requested = 1;
    } else if (now + timeout < t->seal_due_at) {
        t->seal_due_at = now + timeout;
    }
    in_flight_append(t, (int32_t)channel, now);
    t->in_flight++;
    r->in_flight++;
}

static int64_t send_retransmissions(struct tree *t, struct nf_out *out, int64_t capacity, double now) {
    int64_t n = 0;
    for (int32_t i; n < capacity && (i = loss_next_channel(t)) != NO_CHANNEL;) {
        t->is_pacing_limited = !nf_pacer_allows(&t->pacer);
        if (t->is_pacing_limited) break;
        if (!loss_is_overtaken(t, flight_of(t, i))) {
            t->probe_due = 0;
            t->probes++;
        }
        in_flight_move_to_end(t, i, now);
        t->channels[i].is_retransmitted = 1;
        t->last_retx_at = now;
        t->retransmits++;
        out[n++] = take_packet(t, i);
    }
    return n;
}

/* Sends a chunk of a stream for the first time, by the rules of section 5.1. Returns whether it may. */
static int send_next(struct tree *t, struct stream *r, struct nf_out *out, double now) {
    if (!r->ready_count) return 0;
    int64_t place = r->ready[0];
    if (place >= r->highest && r->in_flight >= nf_window_cwnd(&t->window)) return 0;
    struct segment *s = segment_of(r, place);
    if (s->is_held) return 0;
    if (s->count > 1 && !nf_pacer_allows(&t->pacer)) { /* a segment of one chunk is not paced: workers wait for it */
        t->is_pacing_limited = 1;
        return 0;
    }
    heap_pop(r->ready, &r->ready_count);
    int64_t channel = r->from + place % r->count;
    start_chunk(t, r, channel, s, now);
    if (place >= r->highest) r->highest = place + 1;
    *out = take_packet(t, channel);
    return 1;
}

/* The main stream loads the way up and the gather stream the way down, so the next chunk is of the one whose direction has more
 * tokens: either alone would take those of both. */
static int64_t send_new(struct tree *t, struct nf_out *out, int64_t capacity, double now) {
    int64_t n = 0;
    while (n < capacity && send_next(t, &t->streams[CONTROL], out + n, now)) n++;
    while (n < capacity) {
        enum stream_id first = nf_pacer_has_more_down(&t->pacer) ? GATHER : MAIN, second = first == MAIN ? GATHER : MAIN;
        if (!send_next(t, &t->streams[first], out + n, now) && !send_next(t, &t->streams[second], out + n, now)) break;
        n++;
    }
    return n;
}

int64_t tree_send(struct tree *t, struct nf_out *out, int64_t capacity, double now) {
    loss_apply_timers(t, now);
    nf_pacer_fill(&t->pacer, now);
    t->is_pacing_limited = 0;
    int64_t n = t->quorum ? send_seal_requests(t, out, capacity, now) : 0;
    n += send_retransmissions(t, out + n, capacity - n, now);
    n += send_new(t, out + n, capacity - n, now);
    if (n) t->last_activity_at = now;
    return n;
}

double tree_next_deadline(const struct tree *t, double now) {
    double next = t->is_pacing_limited ? now + nf_pacer_wait(&t->pacer) : NF_UNKNOWN;
    if (!t->in_flight) return next;
    double due = loss_next_deadline(t);
    due = t->seal_due_at < due ? t->seal_due_at : due;
    return due < next ? due : next;
}

double tree_coalescing_delay(const struct tree *t) {
    int64_t gathers = t->streams[GATHER].in_flight, others = t->in_flight - gathers;
    int64_t fuller = gathers > others ? gathers : others;
    if (t->pacer.rate == 0 || fuller < MIN_COALESCED) return 0;
    double delay = (double)fuller / (4 * t->pacer.rate);
    return delay < MIN_COALESCING_S ? 0 : delay;
}

int64_t tree_open_slot(const struct tree *t) {
    int64_t oldest = -1;
    for (int64_t i = 0; i < t->channel_count; i++) {
        const struct channel *c = &t->channels[i];
        if (c->is_in_flight && (oldest < 0 || c->first_sent_at < t->channels[oldest].first_sent_at)) oldest = i;
    }
    return oldest < 0 ? 0 : 1 + (int64_t)__builtin_bswap16(packet_of(t, oldest)->slot);
}
