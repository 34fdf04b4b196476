/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "links.h"

#include <stdlib.h>

enum { INITIAL_CAPACITY = 4096 };

/* This is splitmix64. */
double np_random(struct np_network *n) {
    uint64_t z = n->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int grow(struct np_network *n) {
    int32_t capacity = n->packet_capacity ? 2 * n->packet_capacity : INITIAL_CAPACITY;
    struct np_packet *packets = capacity > 0 ? realloc(n->packets, (size_t)capacity * sizeof *packets) : NULL;
    if (!packets) return -1;
    for (int32_t i = n->packet_capacity; i < capacity; i++) packets[i].next = i + 1 < capacity ? i + 1 : n->free;
    n->free = n->packet_capacity;
    n->packets = packets;
    n->packet_capacity = capacity;
    return 0;
}

int32_t np_packet_new(struct np_network *n) {
    if (n->free == NP_NONE && grow(n)) {
        n->out_of_memory = 1;
        return NP_NONE;
    }
    int32_t packet = n->free;
    n->free = n->packets[packet].next;
    return packet;
}

void np_packet_free(struct np_network *n, int32_t packet) {
    n->packets[packet].next = n->free;
    n->free = packet;
}

/* Removes from the queue the packets that have started since the last call. */
static void start_waiting_packets(const struct np_network *n, struct np_link *l) {
    while (l->cursor != NP_NONE && n->packets[l->cursor].starts <= n->now) {
        l->waiting--;
        l->waiting_bytes -= n->packets[l->cursor].bytes;
        l->cursor = n->packets[l->cursor].next;
    }
}

static int is_marked(struct np_network *n, const struct np_link *l) {
    double waiting = (double)l->waiting;
    if (waiting < l->mark_from) return 0;
    return waiting >= l->mark_all || np_random(n) * (l->mark_all - l->mark_from) < l->mark_share * (waiting - l->mark_from);
}

void np_link_send(struct np_network *n, int32_t link, int32_t packet) {
    struct np_link *l = &n->links[link];
    struct np_packet *p = &n->packets[packet];
    start_waiting_packets(n, l);
    int lost = l->loss > 0 && np_random(n) < l->loss;
    if (lost || l->waiting >= l->queue_packets || l->waiting_bytes + p->bytes > l->queue_bytes) {
        *(lost ? &l->lost : &l->dropped) += 1;
        np_packet_free(n, packet);
        return;
    }
    if (p->ecn == NP_ECT && is_marked(n, l)) p->ecn = NP_CE;
    l->marked += p->ecn == NP_CE;
    l->sent++;
    l->sent_bytes += p->bytes;
    np_time takes = (np_time)(p->bytes * l->ps_per_byte + 0.5), saved = (np_time)(l->burst * l->ps_per_byte);
    p->starts = l->free_at + (saved ? takes - saved : 0);
    if (p->starts < n->now) p->starts = n->now;
    l->free_at = (l->free_at > p->starts ? l->free_at : p->starts) + takes;
    p->arrives = (saved ? p->starts : l->free_at) + l->delay;
    p->next = NP_NONE;
    if (p->starts > n->now) {
        if (l->cursor == NP_NONE) l->cursor = packet;
        l->waiting++;
        l->waiting_bytes += p->bytes;
        l->waiting_area += (double)(p->starts - n->now) * p->bytes;
        if (l->waiting_bytes > l->max_waiting) l->max_waiting = l->waiting_bytes;
    }
    if (l->head != NP_NONE) {
        n->packets[l->tail].next = packet;
    } else {
        l->head = packet;
        n->out_of_memory |= np_events_put(&n->events, p->arrives, NP_LINK, (uint32_t)link) != 0;
    }
    l->tail = packet;
}

int32_t np_link_take_arrival(struct np_network *n, int32_t link) {
    struct np_link *l = &n->links[link];
    int32_t packet = l->head;
    if (l->cursor == packet) start_waiting_packets(n, l);
    l->head = n->packets[packet].next;
    if (l->head == NP_NONE)
        np_events_pop(&n->events);
    else
        np_events_postpone_first(&n->events, n->packets[l->head].arrives);
    return packet;
}
