/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "receiver.h"

#include <stdlib.h>
#include <string.h>

enum { INITIAL_CAPACITY = 8 };

static void send_ack(struct np_tcp *t, struct np_flow *f, enum np_kind kind) {
    int32_t packet = np_packet_new(t->network);
    if (packet == NP_NONE) return;
    struct np_packet *p = &t->network->packets[packet];
    *p = (struct np_packet){.path = f->reverse_path + 1, .owner = (int32_t)(f - t->flows), .kind = (uint8_t)kind};
    p->bytes = (uint16_t)t->settings->header_bytes;
    p->tcp.number = f->expected;
    p->tcp.echo = (uint16_t)f->marked;
    p->tcp.stamp = f->echo_stamp;
    for (int i = 0; i < f->range_count && i < NP_BLOCKS; i++) {
        p->tcp.block[i][0] = f->ranges[i].first;
        p->tcp.block[i][1] = f->ranges[i].end;
        p->tcp.blocks++;
    }
    np_link_send(t->network, t->hops[f->reverse_path], packet);
}

void np_receiver_send_ack(struct np_tcp *t, struct np_flow *f) {
    f->unacked = 0;
    f->ack_timer.due = NP_NEVER;
    send_ack(t, f, NP_ACK);
}

/* Merges a segment beyond the expected one with the ranges, and puts its range first. Returns false if it is a duplicate, or
 * there is no memory. */
static int keep(struct np_tcp *t, struct np_flow *f, uint32_t segment) {
    struct np_range joined = {segment, segment + 1};
    int32_t kept = 0;
    for (int32_t i = 0; i < f->range_count; i++) {
        struct np_range r = f->ranges[i];
        if (segment >= r.first && segment < r.end) return 0;
    }
    for (int32_t i = 0; i < f->range_count; i++) {
        struct np_range r = f->ranges[i];
        if (r.end == segment)
            joined.first = r.first;
        else if (r.first == segment + 1)
            joined.end = r.end;
        else
            f->ranges[kept++] = r;
    }
    if (kept == f->range_capacity) {
        int32_t capacity = kept ? 2 * kept : INITIAL_CAPACITY;
        struct np_range *ranges = realloc(f->ranges, (size_t)capacity * sizeof *ranges);
        if (!ranges) {
            t->network->out_of_memory = 1;
            return 0;
        }
        f->ranges = ranges;
        f->range_capacity = capacity;
    }
    memmove(f->ranges + 1, f->ranges, (size_t)kept * sizeof *f->ranges);
    f->ranges[0] = joined;
    f->range_count = kept + 1;
    return 1;
}

/* Takes the expected segment, and a range that follows it. */
static void advance_expected(struct np_flow *f) {
    f->expected++;
    for (int32_t i = 0; i < f->range_count; i++) {
        if (f->ranges[i].first != f->expected) continue;
        f->expected = f->ranges[i].end;
        f->ranges[i] = f->ranges[--f->range_count];
        return;
    }
}

void np_receiver_on_packet(struct np_tcp *t, struct np_flow *f, const struct np_packet *p) {
    if (p->kind == NP_SYN) {
        send_ack(t, f, NP_SYN_ACK);
        return;
    }
    int marked = p->ecn == NP_CE;
    if (np_uses_ecn(f->transport) && marked != f->marked) {
        if (f->unacked) np_receiver_send_ack(t, f); /* earlier segments were marked otherwise */
        f->marked = marked;
    }
    if (!f->unacked) f->echo_stamp = p->tcp.stamp;
    uint32_t segment = p->tcp.number, previous = f->expected;
    int at_once = segment != f->expected || f->range_count;
    if (segment == f->expected)
        advance_expected(f);
    else if (segment > f->expected)
        keep(t, f, segment);
    if (f->expected == f->total && f->stream == NP_NONE) {
        if (f->end == NP_NEVER) f->end = t->network->now;
        at_once = 1; /* acknowledges the end of the data */
    }
    if (at_once || ++f->unacked >= t->settings->delayed)
        np_receiver_send_ack(t, f);
    else if (f->unacked == 1)
        t->network->out_of_memory |= np_timer_set(&t->network->events, &f->ack_timer, t->network->now + t->settings->delay,
                                                  NP_RECEIVER, (uint32_t)(f - t->flows)) < 0;
    if (f->stream != NP_NONE && f->expected != previous) t->on_arrival(t->listener, (int32_t)(f - t->flows), f->expected);
}
