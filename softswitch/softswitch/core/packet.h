/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packet objects as the traffic manager takes, copies and frees them, inlined there: several of each for a frame.
 */
#ifndef SS_PACKET_H
#define SS_PACKET_H

#include "internal.h"

static inline void ss_buf_drop(struct ss_buf *b) {
    if (SS_UNLIKELY(b != NULL) && --b->refs == 0) free(b);
}

/* Takes a packet, whose bytes are those of `from`. */
static inline struct ss_packet *ss_packet_like(struct ss_switch *sw, const struct ss_packet *from) {
    const struct ss_pipeline *pl = from->pl;
    struct ss_pool *pool = &sw->pool;
    struct ss_packet *k = pool->free;
    if (SS_LIKELY(k != NULL)) {
        pool->free = k->next;
        pool->count--;
    } else if (!(k = ss_packet_make(sw, pl))) {
        return NULL;
    }
    return memcpy(k, from, pl->packet_bytes);
}

static inline struct ss_packet *ss_packet_new(struct ss_switch *sw, const struct ss_pipeline *pl) {
    return ss_packet_like(sw, pl->shards[sw->shard].blank);
}

/* Makes it the next copy of its frame: requests of primitives, truncation too, are not inherited. */
static inline void ss_packet_renumber(struct ss_switch *sw, struct ss_packet *k) {
    k->next = NULL;
    k->copy = ++sw->copies;
    k->clone = k->clone_list = k->resubmit = k->recirculate = k->digest = 0;
    k->exited = k->failed = 0;
    k->truncate = UINT32_MAX;
}

/* Makes a copy with its own PHV, as BMv2's clone_with_phv. */
static inline struct ss_packet *ss_packet_copy(struct ss_switch *sw, struct ss_packet *k) {
    struct ss_packet *c = ss_packet_like(sw, k);
    if (!c) return NULL;
    const struct ss_big *end = ss_bigs(k) + k->pl->program->n_big;
    for (struct ss_big *h = ss_bigs(k); h < end; h++)
        if (h->block) h->block->refs++;
    if (SS_UNLIKELY(c->buf != NULL)) c->buf->refs++;
    ss_packet_renumber(sw, c);
    return c;
}

static inline void ss_packet_free(struct ss_switch *sw, struct ss_packet *k) {
    struct ss_pool *pool = &sw->pool;
    ss_buf_drop(k->buf);
    const struct ss_big *end = ss_bigs(k) + k->pl->program->n_big;
    for (struct ss_big *h = ss_bigs(k); h < end; h++) ss_big_release(k, h);
    if (SS_UNLIKELY(pool->count >= SS_POOL)) {
        ss_packet_unmake(k);
        return;
    }
    k->next = pool->free;
    pool->free = k;
    pool->count++;
}

#endif
