/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "tree.h"

#include <stdlib.h>
#include <string.h>

enum { PROBES = 4, TAIL_FACTOR = 4 };

int tree_start(struct tree *t, const struct nf_assignment *a, int64_t index, double now) {
    *t = (struct tree){.spec = a->trees[index], .index = index, .epoch = a->epoch, .lanes = a->lanes, .timing = a->timing};
    t->stride = NF_HEADER_BYTES + 4 * t->lanes;
    t->count = t->spec.slots / 2;
    t->limit = a->rounds * t->spec.slots;
    t->oldest = t->newest = NOBODY;
    t->part_back = NF_UNKNOWN;
    t->found.first_back = NF_UNKNOWN;
    size_t count = (size_t)t->count;
    t->channels = calloc(count, sizeof *t->channels);
    t->rows = calloc(count, (size_t)t->stride);
    t->ready = calloc(count, sizeof *t->ready);
    if (!t->channels || !t->rows || !t->ready) return -1;
    for (int64_t i = 0; i < t->count; i++) {
        t->channels[i].due = i;
        struct header *h = (struct header *)(t->rows + i * t->stride);
        h->version_kind = VERSION_KIND_GRADIENT;
        h->tree = __builtin_bswap16((uint16_t)t->spec.tree);
        h->child = __builtin_bswap16((uint16_t)t->spec.child);
        h->lanes = __builtin_bswap16((uint16_t)t->lanes);
    }
    nf_rtt_start(&t->rtt, &t->timing);
    nf_window_start(&t->window, (enum nf_congestion)a->congestion, t->spec.window, t->timing.late);
    nf_pacer_start(&t->pacer, a->rate_mbps, (double)a->wire_bytes, t->spec.share, t->timing.burst, now);
    return 0;
}

void tree_free(struct tree *t) {
    while (t->first) {
        struct segment *s = t->first;
        t->first = s->next;
        free(s);
    }
    free(t->channels);
    free(t->rows);
    free(t->ready);
}

static void push_ready(struct tree *t, int64_t chunk) {
    int64_t at = t->ready_count++, *heap = t->ready;
    while (at && heap[(at - 1) / 2] > chunk) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = chunk;
}

static void pop_ready(struct tree *t) {
    int64_t *heap = t->ready, last = heap[--t->ready_count], at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= t->ready_count) break;
        if (child + 1 < t->ready_count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
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

int tree_append(struct tree *t, struct segment *s) {
    if (s->count > t->limit - t->end) return 0;
    s->base = t->end;
    s->left = s->count;
    s->tree = t->index;
    s->next = NULL;
    if (t->last)
        t->last->next = s;
    else
        t->first = s;
    t->last = s;
    t->end += s->count;
    t->part_back = NF_UNKNOWN;
    /* each of the first A/2 numbers meets a channel of its own; later ones follow the results of these */
    int64_t stop = s->count < t->count ? t->end : s->base + t->count;
    for (int64_t chunk = s->base; chunk < stop; chunk++) {
        const struct channel *c = &t->channels[chunk & (t->count - 1)];
        if (!c->busy && c->due == chunk) push_ready(t, chunk);
    }
    return 1;
}

static void take_off(struct tree *t, struct segment *s) {
    struct segment **at = &t->first, *before = NULL;
    while (*at != s) {
        before = *at;
        at = &(*at)->next;
    }
    *at = s->next;
    if (t->last == s) t->last = before;
}

struct segment *tree_accept(struct tree *t, const struct header *h, int marked, double now, int64_t *chunk) {
    uint32_t tag = __builtin_bswap32(h->tag);
    if (h->version_kind != VERSION_KIND_RESULT || __builtin_bswap16(h->lanes) != t->lanes || tag >> ROUND_BITS != t->epoch)
        return NULL;
    int64_t slot = __builtin_bswap16(h->slot);
    if (slot >= t->spec.slots) return NULL;
    int64_t number = (int64_t)(tag & ((1u << ROUND_BITS) - 1)) * t->spec.slots + slot;
    struct channel *c = &t->channels[number & (t->count - 1)];
    if (!c->busy || c->due != number) return NULL;
    struct segment *s = c->segment;
    *chunk = number - s->base;
    c->busy = 0;
    c->due += t->count;
    unlink_channel(t, (int32_t)(c - t->channels));
    t->under_way--;
    if (c->due < t->end) push_ready(t, c->due);
    if (!c->resent) {
        t->found.fresh++;
        t->found.rtt_sum += now - c->sent_at;
        if (c->sent_at > t->newest_back) t->newest_back = c->sent_at;
    }
    t->found.count++;
    t->found.marked += marked || (h->flags & CONGESTION);
    if (now < t->found.first_back) t->found.first_back = now;
    if (--s->left == 0) take_off(t, s);
    return s;
}

/* Round trips and marks count once in a window, as the gains of RFC 6298 and RFC 8257 want it: a sample for each turn would
 * make the timeout forget within one round trip how long a way can take. */
static void account_window(struct tree *t, double now) {
    struct found f = t->found;
    double delay = NF_UNKNOWN;
    t->found = (struct found){.first_back = NF_UNKNOWN};
    if (f.first_back < t->part_back) t->part_back = f.first_back;
    if (f.fresh) {
        double rtt = f.rtt_sum / (double)f.fresh;
        nf_rtt_sample(&t->rtt, &t->timing, rtt);
        if (now - rtt >= t->part_back) delay = rtt - t->rtt.least;
    }
    nf_window_results(&t->window, f.count, f.marked, delay);
}

void tree_account(struct tree *t, double now) {
    if (t->found.count == t->accounted) return;
    nf_rtt_progress(&t->rtt);
    t->probed_at = 0;
    t->probes_due = 0;
    t->tail_probed = 0;
    t->active_at = now;
    int whole = t->found.count >= nf_window_size(&t->window) || t->under_way == 0;
    if (whole || t->rtt.smoothed == 0) account_window(t, now);
    t->accounted = t->found.count;
}

static const struct segment *segment_of(const struct tree *t, int64_t chunk) {
    const struct segment *s = t->first;
    while (chunk >= s->base + s->count) s = s->next;
    return s;
}

static struct nf_out out_of(const struct tree *t, int64_t channel) {
    return (struct nf_out){t->rows + channel * t->stride, t->spec.endpoint};
}

static void begin_chunk(struct tree *t, int64_t chunk, const struct segment *s, fill_chunk *fill, double now) {
    int64_t i = chunk & (t->count - 1);
    struct channel *c = &t->channels[i];
    struct header *h = (struct header *)(t->rows + i * t->stride);
    h->tag = __builtin_bswap32((uint32_t)(t->epoch << ROUND_BITS | chunk / t->spec.slots));
    h->slot = __builtin_bswap16((uint16_t)(chunk & (t->spec.slots - 1)));
    h->flags = h->exponent = 0;
    fill(t, s, chunk - s->base, h);
    c->segment = (struct segment *)s;
    c->busy = 1;
    c->resent = 0;
    link_channel(t, (int32_t)i, now);
    t->under_way++;
}

/* Whether a chunk that went later than the oldest under way, by more than packets change places, is back. */
static int overtaken(const struct tree *t) {
    return t->channels[t->oldest].sent_at < t->newest_back - nf_rtt_reordering(&t->rtt, &t->timing);
}

/* RFC 8985's tail loss probe: after two round trips of silence the oldest chunk goes again, once. Where the timeout is not
 * much longer than that, it would only ask those who wait for slower workers. */
static double tail_probe_at(const struct tree *t) {
    if (t->tail_probed || t->oldest == NOBODY || t->rtt.smoothed == 0) return NF_UNKNOWN;
    if (nf_rtt_timeout(&t->rtt, &t->timing) < TAIL_FACTOR * t->rtt.smoothed) return NF_UNKNOWN;
    return t->active_at + 2 * t->rtt.smoothed + t->timing.least_reordering;
}

/* Of the oldest chunk, or of the probes that went for it. */
static double timeout_at(const struct tree *t) {
    double asked = t->channels[t->oldest].sent_at;
    return (t->probed_at > asked ? t->probed_at : asked) + nf_rtt_timeout(&t->rtt, &t->timing);
}

/* What went more than a little before a chunk that is back, and silence: after that long a few of the oldest go again. */
static void look_for_losses(struct tree *t, double now) {
    if (t->oldest == NOBODY) return;
    if (overtaken(t)) {
        if (now - t->shrank_at > t->rtt.smoothed) {
            t->shrank_at = now;
            nf_window_loss(&t->window);
        }
        return;
    }
    if (now >= tail_probe_at(t)) {
        t->tail_probed = 1;
        t->probes_due++;
        t->probes++;
    }
    if (now >= timeout_at(t)) {
        t->probed_at = now;
        t->probes_due = t->under_way / 4 < 1 ? 1 : t->under_way / 4 > PROBES ? PROBES : t->under_way / 4;
        t->probes += t->probes_due;
        nf_rtt_expired(&t->rtt, &t->timing);
    }
}

/* Whether the oldest chunk is to go again. */
static int lacking(const struct tree *t) {
    return t->oldest != NOBODY && (t->probes_due > 0 || overtaken(t));
}

static int64_t send_again(struct tree *t, struct nf_out *out, int64_t room, double now) {
    int64_t n = 0;
    while (n < room && lacking(t)) {
        int32_t i = t->oldest;
        if (!overtaken(t)) t->probes_due--;
        unlink_channel(t, i);
        link_channel(t, i, now);
        t->channels[i].resent = 1;
        t->retransmits++;
        out[n++] = out_of(t, i);
    }
    return n;
}

int64_t tree_send(struct tree *t, fill_chunk *fill, struct nf_out *out, int64_t room, double now) {
    look_for_losses(t, now);
    int64_t allowance = nf_pacer_allowance(&t->pacer, now), window = nf_window_size(&t->window);
    int64_t n = send_again(t, out, room < allowance ? room : allowance, now);
    t->held_back = n == allowance && lacking(t);
    while (n < room && t->ready_count) {
        int64_t chunk = t->ready[0];
        if (chunk >= t->highest && t->under_way >= window) break;
        const struct segment *s = segment_of(t, chunk);
        if (n >= allowance && s->count > 1) { /* a part of one chunk is a question, not a stream: it goes at once */
            t->held_back = 1;
            break;
        }
        pop_ready(t);
        begin_chunk(t, chunk, s, fill, now);
        if (chunk >= t->highest) t->highest = chunk + 1;
        out[n++] = out_of(t, chunk & (t->count - 1));
    }
    if (n) t->active_at = now;
    t->pacer.tokens -= (double)n;
    return n;
}

double tree_next(const struct tree *t, double now) {
    double next = t->held_back ? now + nf_pacer_wait(&t->pacer) : NF_UNKNOWN;
    if (t->oldest == NOBODY) return next;
    double due = timeout_at(t), tail = tail_probe_at(t);
    due = tail < due ? tail : due;
    return due < next ? due : next;
}
