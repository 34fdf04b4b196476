/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Creation and destruction of a switch, the swap of its program, and its locks. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

struct ss_switch *ss_switch_new(uint32_t drop_port, uint64_t start_ns, uint64_t seed) {
    struct ss_switch *sw = calloc(1, sizeof *sw);
    if (!sw) return NULL;
    ss_lock_init(&sw->lock);
    sw->drop_port = drop_port;
    sw->n_queues = 1;
    sw->start_ns = sw->last_ns = start_ns;
    sw->seed = seed;
    sw->ring = calloc(SS_RING, sizeof *sw->ring);
    sw->out = malloc(SS_MAX_FRAME + 64);
    sw->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (sw->ring && sw->out && sw->event_fd >= 0) return sw;
    ss_switch_free(sw);
    return NULL;
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
    ss_lock_acquire(&sw->lock);
    struct ss_pipeline *old = sw->pl;
    flush(sw);
    if (old) {
        ss_lock_acquire(old->lock);
        old->owner = NULL;
        ss_lock_release(old->lock);
    }
    if (pl) {
        ss_lock_acquire(pl->lock);
        pl->owner = sw;
        pl->drop_port = sw->drop_port;
        ss_ages_start(pl, sw->last_ns);
        ss_groups_update_live(pl);
        sw->next_age_ns = 0; /* under this lock: control operations on `pl` may set it from here on */
        ss_lock_release(pl->lock);
    }
    sw->pl = pl;
    sw->generation++;
    ss_lock_release(&sw->lock);
    return old;
}

uint32_t ss_generation(struct ss_switch *sw) {
    ss_lock_acquire(&sw->lock);
    uint32_t generation = sw->generation;
    ss_lock_release(&sw->lock);
    return generation;
}

void ss_switch_free(struct ss_switch *sw) {
    if (sw->pl) ss_swap(sw, NULL);
    flush(sw);
    for (uint32_t i = 0; sw->ring && i < sw->ring_count; i++) free(sw->ring[(sw->ring_at + i) % SS_RING].data);
    for (uint32_t i = 0; i < (SS_MAX_PORT + 1) / 256; i++) free(sw->ports[i]);
    free(sw->ring);
    free(sw->out);
    free(sw->busy);
    if (sw->event_fd >= 0) close(sw->event_fd);
    ss_lock_destroy(&sw->lock);
    free(sw);
}

void ss_set_tx(struct ss_switch *sw, ss_tx_fn tx, void *ctx) {
    ss_lock_acquire(&sw->lock);
    sw->tx = tx;
    sw->tx_ctx = ctx;
    ss_lock_release(&sw->lock);
}

void ss_set_log(struct ss_switch *sw, ss_log_fn log, void *ctx) {
    ss_lock_acquire(&sw->lock);
    sw->log = log;
    sw->log_ctx = ctx;
    ss_lock_release(&sw->lock);
}

void ss_set_dump(struct ss_switch *sw, uint32_t bytes) {
    ss_lock_acquire(&sw->lock);
    sw->dump_bytes = bytes;
    ss_lock_release(&sw->lock);
}

void ss_stats_get(struct ss_switch *sw, struct ss_stats *out) {
    ss_lock_acquire(&sw->lock);
    *out = sw->stats;
    ss_lock_release(&sw->lock);
}

void ss_begin(struct ss_switch *sw) {
    ss_lock_acquire(&sw->lock);
    if (sw->pl) ss_lock_acquire(sw->pl->lock);
}

int ss_times_frames(const struct ss_switch *sw) { return sw->pl && sw->pl->program->times_frames; }

void ss_end(struct ss_switch *sw) {
    if (sw->pl) ss_lock_release(sw->pl->lock);
    ss_lock_release(&sw->lock);
}
