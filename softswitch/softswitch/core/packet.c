/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packet objects come from a free list; payloads that outlive ss_receive are counted buffers. */
#include "internal.h"

void ss_blocks_remove(const struct ss_shard *s, uint32_t count) {
    for (; count; count--) {
        struct ss_block *b = *s->blocks;
        *s->blocks = b->next;
        free(b);
    }
}

int ss_blocks_add(const struct ss_program *g, const struct ss_shard *s, uint32_t count) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->n_big; i++)
        if (g->big[i] > bytes) bytes = g->big[i];
    bytes = (sizeof(struct ss_block) + bytes + 8 + 63) & ~63ULL;
    for (uint32_t i = 0; i < count; i++) {
        void *made = NULL;
        if (posix_memalign(&made, 64, bytes) != 0) {
            ss_blocks_remove(s, i);
            return SS_E_MEMORY;
        }
        struct ss_block *b = memset(made, 0, bytes);
        b->next = *s->blocks;
        *s->blocks = b;
    }
    return SS_OK;
}

static struct ss_big *big_of(struct ss_packet *k) { return (struct ss_big *)(k->phv + k->pl->program->big_at); }

/* Takes a packet, whose PHV is left to be written. */
static struct ss_packet *take(struct ss_switch *sw, const struct ss_pipeline *pl) {
    struct ss_pool *pool = &sw->pool;
    struct ss_packet *k = pool->free;
    uint64_t bytes = (sizeof *k + pl->program->phv_bytes + 63) & ~63ULL;
    if (k) {
        pool->free = k->next;
        pool->count--;
        return k;
    }
    if (ss_blocks_add(pl->program, &pl->shards[sw->shard], pl->program->n_big) == SS_OK) {
        if (posix_memalign((void **)&k, 64, bytes) == 0) return k;
        ss_blocks_remove(&pl->shards[sw->shard], pl->program->n_big);
    }
    sw->stats.no_memory++;
    return NULL;
}

static void free_object(struct ss_packet *k) {
    ss_blocks_remove(k->shard, k->pl->program->n_big);
    free(k);
}

struct ss_packet *ss_packet_new(struct ss_switch *sw, struct ss_pipeline *pl) {
    struct ss_packet *k = take(sw, pl);
    if (!k) return NULL;
    memset(k, 0, sizeof *k + pl->program->phv_bytes);
    k->pl = pl;
    for (uint32_t i = 0; i < pl->program->n_big; i++) big_of(k)[i].at = (uint8_t *)pl->program->zeros;
    k->shard = &pl->shards[sw->shard];
    k->owner = (uint8_t)sw->shard;
    k->truncate = UINT32_MAX;
    return k;
}

void ss_packet_renumber(struct ss_switch *sw, struct ss_packet *k) {
    k->next = NULL;
    k->copy = ++sw->copies;
    k->clone = k->clone_list = k->resubmit = k->recirculate = k->digest = 0;
    k->exited = k->failed = 0;
    k->truncate = UINT32_MAX;
}

/* Makes a copy with its own PHV, as BMv2's clone_with_phv. */
struct ss_packet *ss_packet_copy(struct ss_switch *sw, const struct ss_packet *k) {
    struct ss_packet *c = take(sw, k->pl);
    if (!c) return NULL;
    memcpy(c, k, sizeof *c + k->pl->program->phv_bytes);
    for (uint32_t i = 0; i < k->pl->program->n_big; i++)
        if (big_of(c)[i].block) big_of(c)[i].block->refs++;
    if (c->buf) c->buf->refs++;
    ss_packet_renumber(sw, c);
    return c;
}

void ss_packet_free(struct ss_switch *sw, struct ss_packet *k) {
    ss_buf_drop(k->buf);
    for (uint32_t i = 0; i < k->pl->program->n_big; i++) ss_big_release(k, big_of(k) + i);
    if (sw->pool.count >= SS_POOL) {
        free_object(k);
        return;
    }
    k->next = sw->pool.free;
    sw->pool.free = k;
    sw->pool.count++;
}

int ss_packet_keep(struct ss_switch *sw, struct ss_packet *k) {
    for (uint32_t i = 0; !k->buf && i < k->pl->program->n_big; i++) {
        struct ss_big *h = big_of(k) + i;
        if (h->at >= k->frame && h->at < k->frame + k->frame_len) ss_big_own(k, h, k->pl->program->big[i]);
    }
    if (k->buf || k->payload_len == 0) {
        k->frame = NULL;
        return 0;
    }
    struct ss_buf *b = ss_buf_new(k->payload_len);
    if (!b) {
        sw->stats.no_memory++;
        return -1;
    }
    memcpy(b->data, k->payload, k->payload_len);
    k->buf = b;
    k->payload = b->data;
    k->frame = NULL;
    return 0;
}

struct ss_buf *ss_buf_new(uint32_t bytes) {
    struct ss_buf *b = malloc(sizeof *b + bytes + 8);
    if (b) b->refs = 1;
    return b;
}

void ss_buf_drop(struct ss_buf *b) {
    if (b && --b->refs == 0) free(b);
}

void ss_pool_clear(struct ss_pool *p) {
    while (p->free) {
        struct ss_packet *k = p->free;
        p->free = k->next;
        free_object(k);
    }
    p->count = 0;
}
