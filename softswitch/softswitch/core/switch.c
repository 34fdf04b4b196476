/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Creation and destruction of a switch, the swap of its program, and its locks. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "packet.h"

static struct ss_switch *new_shard(uint32_t drop_port, uint64_t start_ns, uint64_t seed) {
    struct ss_switch *sw = calloc(1, sizeof *sw);
    if (!sw) return NULL;
    ss_lock_init(&sw->lock);
    pthread_mutex_init(&sw->ring_lock, NULL);
    sw->threads = 1;
    sw->drop_port = drop_port;
    sw->n_queues = 1;
    sw->start_ns = sw->last_ns = start_ns;
    sw->seed = seed;
    sw->event_fd = -1;
    sw->out = malloc(SS_MAX_FRAME + 64);
    return sw;
}

static void free_shard(struct ss_switch *sw) {
    for (uint32_t i = 0; sw->ring && i < sw->ring_count; i++) free(sw->ring[(sw->ring_at + i) % SS_RING].data);
    for (uint32_t i = 0; i < (SS_MAX_PORT + 1) / 256; i++) free(sw->ports[i]);
    free(sw->ring);
    free(sw->out);
    free(sw->busy);
    free(sw->up);
    if (sw->event_fd >= 0) close(sw->event_fd);
    pthread_mutex_destroy(&sw->ring_lock);
    ss_lock_destroy(&sw->lock);
    free(sw);
}

struct ss_switch *ss_switch_new(uint32_t drop_port, uint64_t start_ns, uint64_t seed) {
    struct ss_switch *sw = new_shard(drop_port, start_ns, seed);
    if (!sw) return NULL;
    sw->shards = calloc(SS_MAX_THREADS, sizeof *sw->shards);
    sw->ring = calloc(SS_RING, sizeof *sw->ring);
    sw->up = calloc(SS_MAX_PORT + 1, sizeof *sw->up);
    sw->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (sw->shards) sw->shards[0] = sw;
    if (sw->shards && sw->ring && sw->up && sw->out && sw->event_fd >= 0) return sw;
    ss_switch_free(sw);
    return NULL;
}

int ss_set_threads(struct ss_switch *sw, uint32_t count) {
    if (count == 0 || count > SS_MAX_THREADS || count & (count - 1) || sw->threads > 1) return -1;
    for (; sw->threads < count; sw->threads++) {
        struct ss_switch *shard = new_shard(sw->drop_port, sw->start_ns, sw->seed);
        sw->shards[sw->threads] = shard;
        if (!shard) return -1;
        shard->shards = sw->shards;
        shard->shard = sw->threads;
        shard->n_queues = sw->n_queues;
        if (!shard->out) return free_shard(shard), -1;
    }
    for (uint32_t i = 0; i < count; i++) sw->shards[i]->threads = count;
    return 0;
}

struct ss_switch *ss_switch_shard(struct ss_switch *sw, uint32_t index) {
    return index < sw->threads ? sw->shards[index] : NULL;
}

static void flush(struct ss_switch *sw) {
    while (sw->n_busy) {
        struct ss_port *p = ss_port(sw, sw->busy[--sw->n_busy]);
        p->busy_at = 0;
        uint32_t queue;
        while (ss_port_next(p, &queue) != SS_NEVER) {
            sw->stats.swap_drops++;
            ss_packet_free(sw, ss_port_pop(p, queue));
        }
    }
    ss_pool_clear(&sw->pool);
}

struct ss_pipeline *ss_swap(struct ss_switch *sw, struct ss_pipeline *pl) {
    ss_switch_lock(sw);
    struct ss_pipeline *old = sw->pl;
    for (uint32_t i = 0; i < sw->threads; i++) flush(sw->shards[i]);
    if (old) {
        ss_pipeline_lock(old);
        old->owner = NULL;
        ss_pipeline_unlock(old);
    }
    if (pl) {
        ss_pipeline_lock(pl);
        pl->owner = sw;
        pl->drop_port = sw->drop_port;
        ss_ages_start(pl, sw->last_ns);
        ss_groups_update_live(pl);
        sw->next_age_ns = 0; /* under this lock: control operations on `pl` may set it from here on */
        ss_pipeline_unlock(pl);
    }
    for (uint32_t i = 0; i < sw->threads; i++) {
        sw->shards[i]->pl = pl;
        sw->shards[i]->generation++;
    }
    ss_switch_unlock(sw);
    return old;
}

uint32_t ss_generation(struct ss_switch *sw) {
    ss_lock_acquire(&sw->lock);
    uint32_t generation = sw->generation;
    ss_lock_release(&sw->lock);
    return generation;
}

void ss_switch_free(struct ss_switch *sw) {
    struct ss_switch **shards = sw->shards;
    if (sw->pl) ss_swap(sw, NULL);
    for (uint32_t i = sw->threads; shards && i-- > 0;) {
        flush(shards[i]);
        free_shard(shards[i]);
    }
    if (!shards) free_shard(sw);
    free(shards);
}

void ss_set_buffer(struct ss_switch *sw, ss_buffer_fn buffer) {
    ss_lock_acquire(&sw->lock);
    sw->buffer = buffer;
    ss_lock_release(&sw->lock);
}

void ss_set_tx(struct ss_switch *sw, ss_tx_fn tx, void *ctx) {
    ss_lock_acquire(&sw->lock);
    sw->tx = tx;
    sw->tx_ctx = ctx;
    sw->buffer = NULL;
    ss_lock_release(&sw->lock);
}

void ss_set_log(struct ss_switch *sw, ss_log_fn log, void *ctx) {
    ss_switch_lock(sw);
    for (uint32_t i = 0; i < sw->threads; i++) {
        sw->shards[i]->log = log;
        sw->shards[i]->log_ctx = ctx;
    }
    ss_switch_unlock(sw);
}

void ss_set_dump(struct ss_switch *sw, uint32_t bytes) {
    ss_switch_lock(sw);
    for (uint32_t i = 0; i < sw->threads; i++) sw->shards[i]->dump_bytes = bytes;
    ss_switch_unlock(sw);
}

void ss_set_handover(struct ss_switch *sw, ss_handover_fn handover, void *ctx) {
    ss_lock_acquire(&sw->lock);
    sw->handover = handover;
    sw->handover_ctx = ctx;
    ss_lock_release(&sw->lock);
}

static void add_stats(struct ss_switch *shard, struct ss_stats *out) {
    ss_lock_acquire(&shard->lock);
    const struct ss_stats *s = &shard->stats;
    out->rx_oversize += s->rx_oversize;
    out->no_pipeline += s->no_pipeline;
    out->ingress_drops += s->ingress_drops;
    out->egress_drops += s->egress_drops;
    out->bad_port += s->bad_port;
    out->bad_clone += s->bad_clone;
    out->empty_group += s->empty_group;
    out->loops_cut += s->loops_cut;
    out->too_long += s->too_long;
    out->swap_drops += s->swap_drops;
    out->asserts_failed += s->asserts_failed;
    out->events_lost += s->events_lost;
    out->no_memory += s->no_memory;
    out->handed_over += s->handed_over;
    ss_lock_release(&shard->lock);
}

void ss_stats_get(struct ss_switch *sw, struct ss_stats *out) {
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < sw->threads; i++) add_stats(sw->shards[i], out);
}

void ss_begin(struct ss_switch *sw) {
    ss_lock_acquire(&sw->lock);
    if (sw->pl) ss_lock_acquire(sw->pl->shards[sw->shard].lock);
}

int ss_times_frames(const struct ss_switch *sw) { return sw->pl && sw->pl->program->times_frames; }

void ss_end(struct ss_switch *sw) {
    if (sw->pl) ss_lock_release(sw->pl->shards[sw->shard].lock);
    ss_lock_release(&sw->lock);
}
