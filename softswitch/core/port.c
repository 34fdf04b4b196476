/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ports: counters, up or down, and for those with a rate the queue before egress. */
#include "internal.h"

struct ss_port *ss_port(struct ss_switch *sw, uint32_t port) {
  if (port > SS_MAX_PORT) return NULL;
  struct ss_port **block = &sw->ports[port / 256];
  if (!*block) *block = calloc(256, sizeof **block);
  return *block ? *block + port % 256 : NULL;
}

static int mark_busy(struct ss_switch *sw, struct ss_port *p, uint32_t port) {
  if (p->busy_at) return 0;
  if (sw->n_busy == sw->busy_room) {
    uint32_t room = sw->busy_room ? sw->busy_room * 2 : 16;
    uint32_t *busy = realloc(sw->busy, room * sizeof *busy);
    if (!busy) return -1;
    sw->busy = busy;
    sw->busy_room = room;
  }
  sw->busy[sw->n_busy++] = port;
  p->busy_at = sw->n_busy;
  return 0;
}

/* 0, or -1 if the packet was dropped (and is the caller's to free). */
int ss_port_push(struct ss_switch *sw, struct ss_port *p, uint32_t port, struct ss_packet *k) {
  if (p->depth >= p->bound) {
    p->stats.queue_drops++;
    return -1;
  }
  if (ss_packet_keep(sw, k) != 0 || mark_busy(sw, p, port) != 0) return -1;
  k->next = NULL;
  if (p->tail) p->tail->next = k;
  else p->head = k;
  p->tail = k;
  p->depth++;
  return 0;
}

static struct ss_packet *pop(struct ss_port *p) {
  struct ss_packet *k = p->head;
  p->head = k->next;
  if (!p->head) p->tail = NULL;
  p->depth--;
  k->next = NULL;
  return k;
}

static void unmark(struct ss_switch *sw, struct ss_port *p) {
  uint32_t last = sw->busy[sw->n_busy - 1];
  sw->busy[p->busy_at - 1] = last;
  ss_port(sw, last)->busy_at = p->busy_at;
  p->busy_at = 0;
  sw->n_busy--;
}

/* Sends what is due, in time order for each port; ports are few, so a scan is enough. */
uint64_t ss_service(struct ss_switch *sw, uint64_t now_ns) {
  sw->last_ns = now_ns;
  uint64_t next = SS_NEVER;
  for (uint32_t i = 0; i < sw->n_busy;) {
    uint32_t port = sw->busy[i];
    struct ss_port *p = ss_port(sw, port);
    while (p->head && (p->free_ns <= now_ns || p->rate == 0)) {
      struct ss_packet *k = pop(p);
      k->now_ns = p->rate ? (p->free_ns > k->now_ns ? p->free_ns : k->now_ns) : now_ns;
      uint64_t before = p->stats.tx_bytes, start = k->now_ns;
      ss_run_egress(sw, k);
      ss_drain(sw);
      if (p->rate) p->free_ns = start + (uint64_t)((unsigned __int128)(p->stats.tx_bytes - before) * 8000000000u / p->rate);
    }
    if (!p->head) {
      unmark(sw, p);
      continue;
    }
    if (p->free_ns < next) next = p->free_ns;
    i++;
  }
  if (now_ns >= sw->next_age_ns) sw->next_age_ns = ss_age(sw, now_ns);
  return sw->next_age_ns < next ? sw->next_age_ns : next;
}

int ss_port_config(struct ss_switch *sw, uint32_t port, uint64_t rate_bps, uint32_t queue_packets) {
  if (port > SS_MAX_PORT || (rate_bps && (queue_packets == 0 || queue_packets > 65536))) return -1;
  ss_lock_control(&sw->lock);
  struct ss_port *p = ss_port(sw, port);
  if (p) {
    p->rate = rate_bps;
    p->bound = queue_packets;
  }
  ss_unlock(&sw->lock);
  return p ? 0 : -1;
}

int ss_port_set_up(struct ss_switch *sw, uint32_t port, int up) {
  if (port > SS_MAX_PORT) return -1;
  ss_lock_control(&sw->lock);
  if (sw->pl) ss_lock_control(sw->pl->lock);
  sw->up[port] = up != 0;
  if (sw->pl) {
    ss_groups_follow(sw->pl);
    ss_unlock(sw->pl->lock);
  }
  ss_unlock(&sw->lock);
  return 0;
}

int ss_port_stats_get(struct ss_switch *sw, uint32_t port, struct ss_port_stats *out) {
  memset(out, 0, sizeof *out);
  if (port > SS_MAX_PORT) return -1;
  ss_lock_control(&sw->lock);
  struct ss_port *block = sw->ports[port / 256];
  if (block) {
    *out = block[port % 256].stats;
    out->queue_depth = block[port % 256].depth;
  }
  ss_unlock(&sw->lock);
  return 0;
}
