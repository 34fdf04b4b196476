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

struct ss_packet *ss_packet_make(struct ss_switch *sw, const struct ss_pipeline *pl) {
    const struct ss_shard *shard = &pl->shards[sw->shard];
    void *made = NULL;
    if (ss_blocks_add(pl->program, shard, pl->program->n_big) == SS_OK) {
        if (posix_memalign(&made, 64, pl->packet_bytes) == 0) return made;
        ss_blocks_remove(shard, pl->program->n_big);
    }
    sw->stats.no_memory++;
    return NULL;
}

void ss_packet_unmake(struct ss_packet *k) {
    ss_blocks_remove(k->shard, k->pl->program->n_big);
    free(k);
}

int ss_packet_keep(struct ss_switch *sw, struct ss_packet *k) {
    for (uint32_t i = 0; !k->buf && i < k->pl->program->n_big; i++) {
        struct ss_big *h = ss_bigs(k) + i;
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

void ss_pool_clear(struct ss_pool *p) {
    while (p->free) {
        struct ss_packet *k = p->free;
        p->free = k->next;
        ss_packet_unmake(k);
    }
    p->count = 0;
}
