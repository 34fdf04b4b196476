/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ports: counters, liveness, and the egress queues of ports with a rate. */
#include "internal.h"

#define COALESCE_NS 400000u
#define COALESCED_FRAMES 16u /* a run of the I/O engine; at most a quarter of the queue */
#define DEFAULT_BOUND 64u /* default of queue and port: BMv2's */

static int mark_busy(struct ss_switch *sw, struct ss_port *p, uint32_t port) {
    if (p->busy_at) return 0;
    if (sw->n_busy == sw->busy_capacity) {
        uint32_t capacity = sw->busy_capacity ? sw->busy_capacity * 2 : 16;
        uint32_t *busy = realloc(sw->busy, capacity * sizeof *busy);
        if (!busy) return -1;
        sw->busy = busy;
        sw->busy_capacity = capacity;
    }
    sw->busy[sw->n_busy++] = port;
    p->busy_at = sw->n_busy;
    return 0;
}

/* Returns the earliest departure of the first packet of a queue: after its arrival, when link and queue are free. */
static uint64_t departure_ns(const struct ss_port *p, const struct ss_queue *q) {
    uint64_t at = q->head->now_ns;
    if (p->rate && p->free_ns > at) at = p->free_ns;
    if (q->rate && q->free_ns > at) at = q->free_ns;
    return at;
}

/* Returns where the credit of a link that was idle at `start` begins. */
static uint64_t credit_start_ns(const struct ss_port *p, uint64_t start) {
    uint64_t earliest = start > p->credit_ns ? start - p->credit_ns : 0;
    return p->free_ns > earliest ? p->free_ns : earliest;
}

uint32_t ss_port_backlog(const struct ss_port *p, uint32_t queue, uint64_t now_ns) {
    const struct ss_queue *q = &p->queues[queue];
    if (!q->head || !p->rate || q->rate || !p->coalesce_ns) return q->depth;
    uint64_t start = departure_ns(p, q), bytes = 0;
    if (start > now_ns) return q->depth;
    uint64_t capacity = (uint64_t)((unsigned __int128)(now_ns - credit_start_ns(p, start)) * p->rate / 8000000000u);
    if (q->bytes <= capacity) return 0;
    uint32_t due = 0;
    for (const struct ss_packet *k = q->head; k && bytes <= capacity; k = k->next) {
        bytes += k->length;
        due++;
    }
    return q->depth - due;
}

void ss_port_set_backlog(struct ss_switch *sw, uint32_t port, uint32_t packets, uint32_t wait_us) {
    struct ss_port *p = ss_port(sw, port);
    if (!p) return;
    p->link_packets = p->rate ? 0 : packets;
    p->link_wait_us = p->rate ? 0 : wait_us;
}

/* Returns 0, or -1 for a dropped packet, which the caller frees. */
int ss_port_push(struct ss_switch *sw, struct ss_port *p, uint32_t port, struct ss_packet *k, uint32_t backlog) {
    struct ss_queue *q = &p->queues[k->queue];
    uint32_t bound = q->bound ? q->bound : p->bound ? p->bound : DEFAULT_BOUND;
    if (backlog >= bound) {
        p->stats.queue_drops++;
        return -1;
    }
    if (ss_packet_keep(sw, k) != 0 || mark_busy(sw, p, port) != 0) return -1;
    k->next = NULL;
    if (q->tail)
        q->tail->next = k;
    else
        q->head = k;
    q->tail = k;
    q->depth++;
    q->bytes += k->length;
    p->depth++;
    return 0;
}

struct ss_packet *ss_port_pop(struct ss_port *p, uint32_t queue) {
    struct ss_queue *q = &p->queues[queue];
    struct ss_packet *k = q->head;
    q->head = k->next;
    if (!q->head) q->tail = NULL;
    q->depth--;
    q->bytes -= k->length;
    p->depth--;
    k->next = NULL;
    return k;
}

uint64_t ss_port_next(const struct ss_port *p, uint32_t *queue) {
    uint64_t first = SS_NEVER;
    for (uint32_t i = 0; i < SS_QUEUES; i++)
        if (p->queues[i].head && departure_ns(p, &p->queues[i]) < first) first = departure_ns(p, &p->queues[i]);
    for (uint32_t i = SS_QUEUES; i-- > 0;) {
        if (!p->queues[i].head || departure_ns(p, &p->queues[i]) > first) continue;
        *queue = i;
        break;
    }
    return first;
}

/* Returns the time in which frames coalesce, as a timer per frame is expensive where hosts and switches share processors: that
 * of 16 frames, at most a quarter of the queue, or a sixteenth of a long one. */
static uint64_t coalesce_ns(const struct ss_port *p, uint64_t frame_ns) {
    uint32_t quarter = p->bound / 4, frames = quarter < COALESCED_FRAMES ? quarter : COALESCED_FRAMES;
    if (p->bound / 16 > frames) frames = p->bound / 16;
    uint64_t wait = frames * frame_ns;
    if (frame_ns >= COALESCE_NS || p->bound < 32) return 0;
    return (wait < COALESCE_NS ? wait : COALESCE_NS) - frame_ns;
}

/* Returns the credit of an idle link, like a token bucket's: a burst of up to three quarters of the queue, which pacing allows a
 * worker too, then leaves at once and is neither delayed nor a queue. */
static uint64_t credit_ns(const struct ss_port *p, uint64_t frame_ns) {
    uint64_t burst = p->bound * frame_ns * 3 / 4;
    return p->coalesce_ns ? (burst < COALESCE_NS ? burst : COALESCE_NS) - frame_ns : 0;
}

void ss_port_occupy_link(struct ss_port *p, uint64_t start, uint64_t frame_ns) {
    p->coalesce_ns = coalesce_ns(p, frame_ns);
    p->credit_ns = credit_ns(p, frame_ns);
    p->free_ns = credit_start_ns(p, start) + frame_ns;
}

/* A packet behind others waits until a run of them may leave. */
uint64_t ss_port_release_ns(const struct ss_port *p, uint64_t start) {
    return p->rate && start == p->free_ns ? start + p->coalesce_ns : start;
}

void ss_port_mark_idle(struct ss_switch *sw, struct ss_port *p) {
    uint32_t last = sw->busy[sw->n_busy - 1];
    sw->busy[p->busy_at - 1] = last;
    ss_port(sw, last)->busy_at = p->busy_at;
    p->busy_at = 0;
    sw->n_busy--;
}

int ss_port_config(struct ss_switch *sw, uint32_t port, uint64_t rate_bps, uint32_t queue_packets) {
    if (port > SS_MAX_PORT || (rate_bps && (queue_packets == 0 || queue_packets > 65536 || sw->threads > 1))) return -1;
    ss_lock_acquire(&sw->lock);
    struct ss_port *p = ss_port(sw, port);
    if (p) {
        p->rate = rate_bps;
        p->bound = queue_packets;
    }
    ss_lock_release(&sw->lock);
    return p ? 0 : -1;
}

uint64_t ss_port_rate(struct ss_switch *sw, uint32_t port) {
    ss_lock_acquire(&sw->lock);
    const struct ss_port *p = ss_port(sw, port);
    uint64_t rate = p ? p->rate : 0;
    ss_lock_release(&sw->lock);
    return rate;
}

int ss_set_queues(struct ss_switch *sw, uint32_t count) {
    if (count == 0 || count > SS_QUEUES) return -1;
    for (uint32_t i = 0; i < sw->threads; i++) sw->shards[i]->n_queues = count;
    return 0;
}

int ss_queue_config(struct ss_switch *sw, uint32_t port, uint32_t queue, uint64_t rate_pps, uint64_t bound) {
    if (port > SS_MAX_PORT || queue >= sw->n_queues || (bound != SS_KEEP && bound > 65536) || sw->threads > 1) return -1;
    ss_lock_acquire(&sw->lock);
    struct ss_port *p = ss_port(sw, port);
    if (p && rate_pps != SS_KEEP) p->queues[queue].rate = rate_pps;
    if (p && bound != SS_KEEP) p->queues[queue].bound = (uint32_t)bound;
    ss_lock_release(&sw->lock);
    return p ? 0 : -1;
}

int ss_port_set_up(struct ss_switch *sw, uint32_t port, int up) {
    if (port > SS_MAX_PORT) return -1;
    ss_switch_lock(sw);
    if (sw->pl) ss_pipeline_lock(sw->pl);
    sw->up[port] = up != 0;
    if (sw->pl) {
        ss_groups_update_live(sw->pl);
        ss_pipeline_unlock(sw->pl);
    }
    ss_switch_unlock(sw);
    return 0;
}

static void add_port_stats(struct ss_switch *shard, uint32_t port, struct ss_port_stats *out) {
    ss_lock_acquire(&shard->lock);
    const struct ss_port *block = shard->ports[port / 256];
    if (block) {
        const struct ss_port_stats *stats = &block[port % 256].stats;
        out->rx_packets += stats->rx_packets;
        out->rx_bytes += stats->rx_bytes;
        out->tx_packets += stats->tx_packets;
        out->tx_bytes += stats->tx_bytes;
        out->queue_drops += stats->queue_drops;
        out->queue_depth += block[port % 256].depth + block[port % 256].link_packets;
    }
    ss_lock_release(&shard->lock);
}

int ss_port_stats_get(struct ss_switch *sw, uint32_t port, struct ss_port_stats *out) {
    memset(out, 0, sizeof *out);
    if (port > SS_MAX_PORT) return -1;
    for (uint32_t i = 0; i < sw->threads; i++) add_port_stats(sw->shards[i], port, out);
    return 0;
}
