/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "seal.h"

#include <stddef.h>

#include "heap.h"
#include "in_flight.h"

enum { SHORT_TIMEOUT = 4 }; /* RTTs that suffice where a worker is missing anyway */

/* Returns the time after which a chunk requests sealing. After a sum of the call was sealed without a worker, a few RTTs
 * suffice for the workers that are present. It is 0 if the last partial sum had exactly k contributions: waiting cannot add
 * one. */
double seal_timeout(const struct tree *t, const struct segment *s) {
    if (!t->quorum || !s->quorum) return NF_UNKNOWN;
    int64_t count = s->quorum->last_partial_count;
    if (!count) return t->seal_timeout;
    if (count <= t->quorum) return 0;
    double short_timeout = SHORT_TIMEOUT * (t->rtt.srtt + t->timing.min_reorder_window);
    return short_timeout < t->seal_timeout ? short_timeout : t->seal_timeout;
}

int64_t send_seal_requests(struct tree *t, struct nf_out *out, int64_t capacity, double now) {
    if (now < t->seal_due_at) return 0;
    int64_t n = 0;
    double next = NF_UNKNOWN;
    const struct flight *f = &t->flights[0]; /* there are no gathers with a quorum */
    for (int32_t i = f->oldest, newest = f->newest; i != NO_CHANNEL;) {
        struct channel *c = &t->channels[i];
        int32_t following = i == newest ? NO_CHANNEL : c->next;
        double due = c->seal_requested ? NF_UNKNOWN : c->first_sent_at + seal_timeout(t, c->segment);
        if (due <= now && n < capacity) {
            packet_of(t, i)->flags |= FLAG_SEAL;
            c->seal_requested = c->is_retransmitted = 1;
            in_flight_move_to_end(t, i, now);
            out[n++] = (struct nf_out){(const uint8_t *)packet_of(t, i), t->spec.endpoint, t->packet_bytes};
            nf_pacer_charge(&t->pacer, 1, 1);
        } else if (due < next) {
            next = due;
        }
        i = following;
    }
    t->seal_due_at = next;
    return n;
}

void update_contributor_count(struct tree *t, const struct segment *s, const struct header *h) {
    int64_t count = h->reserved & COUNT_MASK;
    int is_partial = count < t->workers;
    if (s->quorum && !s->quorum->last_partial_count && is_partial) t->seal_due_at = 0; /* timeouts of chunks in flight shrink */
    if (s->quorum) s->quorum->last_partial_count = is_partial ? count : 0;
    t->late_contributions += h->flags & FLAG_SEAL && __builtin_bswap16(h->child) == t->spec.child;
}

struct segment *accept_early_result(struct stream *r, int64_t place) {
    struct segment *s = r->first;
    while (s && place >= s->base + s->count && !s->is_held) s = s->next;
    if (!s || s->is_held || !s->quorum || place < s->base) return NULL;
    if (!heap_remove(r->ready, &r->ready_count, place)) return NULL;
    if (place >= r->highest) r->highest = place + 1;
    return s;
}
