/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "lines.h"

#include <stdlib.h>

enum { FIRST_PACKETS = 4096 };

/* splitmix64 */
double np_random(struct np_network *n) {
    uint64_t z = n->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int grow(struct np_network *n) {
    int32_t room = n->packet_room ? 2 * n->packet_room : FIRST_PACKETS;
    struct np_packet *packets = room > 0 ? realloc(n->packets, (size_t)room * sizeof *packets) : NULL;
    if (!packets) return -1;
    for (int32_t i = n->packet_room; i < room; i++) packets[i].next = i + 1 < room ? i + 1 : n->free;
    n->free = n->packet_room;
    n->packets = packets;
    n->packet_room = room;
    return 0;
}

int32_t np_packet_new(struct np_network *n) {
    if (n->free == NP_NOBODY && grow(n)) {
        n->broken = 1;
        return NP_NOBODY;
    }
    int32_t packet = n->free;
    n->free = n->packets[packet].next;
    return packet;
}

void np_packet_free(struct np_network *n, int32_t packet) {
    n->packets[packet].next = n->free;
    n->free = packet;
}

/* Those that started since the last look wait no more. */
static void look(const struct np_network *n, struct np_line *l) {
    while (l->cursor != NP_NOBODY && n->packets[l->cursor].starts <= n->now) {
        l->waiting--;
        l->waiting_bytes -= n->packets[l->cursor].bytes;
        l->cursor = n->packets[l->cursor].next;
    }
}

static int is_marked(struct np_network *n, const struct np_line *l) {
    double waiting = (double)l->waiting;
    if (waiting < l->mark_from) return 0;
    return waiting >= l->mark_all || np_random(n) * (l->mark_all - l->mark_from) < l->mark_share * (waiting - l->mark_from);
}

void np_line_send(struct np_network *n, int32_t line, int32_t packet) {
    struct np_line *l = &n->lines[line];
    struct np_packet *p = &n->packets[packet];
    look(n, l);
    int lost = l->loss > 0 && np_random(n) < l->loss;
    if (lost || l->waiting >= l->room_packets || l->waiting_bytes + p->bytes > l->room_bytes) {
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
    p->next = NP_NOBODY;
    if (p->starts > n->now) {
        if (l->cursor == NP_NOBODY) l->cursor = packet;
        l->waiting++;
        l->waiting_bytes += p->bytes;
        l->waited += (double)(p->starts - n->now) * p->bytes;
        if (l->waiting_bytes > l->most_waiting) l->most_waiting = l->waiting_bytes;
    }
    if (l->head != NP_NOBODY) {
        n->packets[l->tail].next = packet;
    } else {
        l->head = packet;
        n->broken |= np_events_put(&n->events, p->arrives, NP_LINE, (uint32_t)line) != 0;
    }
    l->tail = packet;
}

int32_t np_line_arrival(struct np_network *n, int32_t line) {
    struct np_line *l = &n->lines[line];
    int32_t packet = l->head;
    if (l->cursor == packet) look(n, l);
    l->head = n->packets[packet].next;
    if (l->head == NP_NOBODY)
        np_events_pop(&n->events);
    else
        np_events_put_off(&n->events, n->packets[l->head].arrives);
    return packet;
}
