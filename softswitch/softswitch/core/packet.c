/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packet objects come from a free list; payloads that outlive ss_receive are counted buffers. */
#include "internal.h"

/* Takes a packet, whose PHV holds the values of the object's previous packet, or zeros. */
static struct ss_packet *take(struct ss_switch *sw, const struct ss_pipeline *pl) {
    struct ss_pool *pool = &sw->pool;
    struct ss_packet *k = pool->free;
    uint64_t bytes = (sizeof *k + pl->program->phv_bytes + 63) & ~63ULL;
    if (k) {
        pool->free = k->next;
        pool->count--;
    } else if (posix_memalign((void **)&k, 64, bytes) == 0) {
        memset(k, 0, bytes);
    } else {
        sw->stats.no_memory++;
        return NULL;
    }
    return k;
}

struct ss_packet *ss_packet_new(struct ss_switch *sw, struct ss_pipeline *pl) {
    struct ss_packet *k = take(sw, pl);
    if (!k) return NULL;
    memset(k, 0, sizeof *k);
    pl->program->clear_phv(k->phv);
    k->pl = pl;
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
    memcpy(c, k, sizeof *c);
    k->pl->program->copy_phv(c->phv, k->phv);
    if (c->buf) c->buf->refs++;
    ss_packet_renumber(sw, c);
    return c;
}

void ss_packet_free(struct ss_switch *sw, struct ss_packet *k) {
    ss_buf_drop(k->buf);
    if (sw->pool.count >= SS_POOL) {
        free(k);
        return;
    }
    k->next = sw->pool.free;
    sw->pool.free = k;
    sw->pool.count++;
}

int ss_packet_keep(struct ss_switch *sw, struct ss_packet *k) {
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
        free(k);
    }
    p->count = 0;
}
