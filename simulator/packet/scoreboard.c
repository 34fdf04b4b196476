/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "scoreboard.h"

#include <stdlib.h>

enum { DUPLICATES = 3, INITIAL_CAPACITY = 64, REORDERING = 4 };

static struct np_segment *at(const struct np_flow *f, int64_t segment) {
    return &f->segments[(uint64_t)segment & (f->segment_capacity - 1)];
}

int np_board_reserve(struct np_flow *f) {
    if (f->next - f->una < f->segment_capacity) return 0;
    uint32_t capacity = f->segment_capacity ? 2 * f->segment_capacity : INITIAL_CAPACITY;
    struct np_segment *segments = calloc(capacity, sizeof *segments);
    if (!segments) return -1;
    for (uint32_t i = f->una; i != f->next; i++) segments[i & (capacity - 1)] = *at(f, i);
    free(f->segments);
    f->segments = segments;
    f->segment_capacity = capacity;
    return 0;
}

void np_board_free(struct np_flow *f) {
    free(f->segments);
    f->segments = NULL;
    f->segment_capacity = 0;
}

static void append(struct np_flow *f, uint32_t segment) {
    struct np_segment *s = at(f, segment);
    s->previous = f->retransmitted ? f->newest_retransmitted : NP_NO_SEGMENT;
    s->next = NP_NO_SEGMENT;
    if (f->retransmitted)
        at(f, f->newest_retransmitted)->next = segment;
    else
        f->oldest_retransmitted = segment;
    f->newest_retransmitted = segment;
    f->retransmitted++;
    s->mark |= NP_RETRANSMITTED;
}

static void unlink_retransmitted(struct np_flow *f, struct np_segment *s) {
    if (s->previous != NP_NO_SEGMENT)
        at(f, s->previous)->next = s->next;
    else
        f->oldest_retransmitted = s->next;
    if (s->next != NP_NO_SEGMENT)
        at(f, s->next)->previous = s->previous;
    else
        f->newest_retransmitted = s->previous;
    f->retransmitted--;
    s->mark &= (uint8_t)~NP_RETRANSMITTED;
}

void np_board_on_send(struct np_flow *f, uint32_t segment, np_time now) {
    struct np_segment *s = at(f, segment);
    s->mark = segment == f->next ? 0 : s->mark | NP_SENT_TWICE;
    s->sent = now;
}

uint32_t np_board_retransmit(struct np_flow *f, np_time now) {
    while ((at(f, f->retransmit_from)->mark & (NP_SEGMENT_LOST | NP_RETRANSMITTED)) != NP_SEGMENT_LOST) f->retransmit_from++;
    append(f, f->retransmit_from);
    np_board_on_send(f, f->retransmit_from, now);
    return f->retransmit_from++;
}

static void allow_retransmission(struct np_flow *f, uint32_t segment) {
    if (segment < f->retransmit_from) f->retransmit_from = segment;
}

/* Updates the acknowledged segment that was sent last. An acknowledgment of a segment sent twice within less than the min RTT
 * is of its first transmission. */
static void note_delivery(struct np_flow *f, uint32_t segment, np_time now) {
    const struct np_segment *s = at(f, segment);
    np_time trip = now - s->sent;
    if (s->mark & NP_SENT_TWICE && trip < f->min_rtt) return;
    if (trip < f->min_rtt) f->min_rtt = trip;
    if (s->sent < f->newest_acked_sent_at || (s->sent == f->newest_acked_sent_at && segment < f->newest_acked)) return;
    f->newest_acked_sent_at = s->sent;
    f->newest_acked = segment;
    f->newest_rtt = trip;
}

static void clear_loss(struct np_flow *f, struct np_segment *s) {
    if (s->mark & NP_RETRANSMITTED) unlink_retransmitted(f, s);
    f->lost -= (s->mark & NP_SEGMENT_LOST) != 0;
}

static uint32_t on_sack(struct np_flow *f, uint32_t segment, np_time now) {
    struct np_segment *s = at(f, segment);
    if (s->mark & NP_SEGMENT_SACKED) return 0;
    note_delivery(f, segment, now);
    clear_loss(f, s);
    s->mark = NP_SEGMENT_SACKED;
    f->sacked++;
    return 1;
}

uint32_t np_board_on_ack(struct np_flow *f, const struct np_packet *p, np_time now) {
    uint32_t newly_acked = 0;
    for (int i = 0; i < p->tcp.blocks; i++) {
        uint32_t first = p->tcp.block[i][0] > f->una ? p->tcp.block[i][0] : f->una;
        for (uint32_t s = first; s < p->tcp.block[i][1] && s < f->next; s++) newly_acked += on_sack(f, s, now);
    }
    for (; f->una < p->tcp.number; f->una++) {
        struct np_segment *s = at(f, f->una);
        if (s->mark & NP_SEGMENT_SACKED) {
            f->sacked--;
        } else {
            newly_acked++;
            note_delivery(f, f->una, now);
            clear_loss(f, s);
        }
    }
    if (f->retransmit_from < f->una) f->retransmit_from = f->una;
    if (f->checked_until < f->una) f->checked_until = f->una;
    return newly_acked;
}

/* Returns whether the segment was sent before the newest acknowledged one. */
static int is_overtaken(const struct np_flow *f, int64_t segment) {
    np_time sent = at(f, segment)->sent;
    return sent < f->newest_acked_sent_at || (sent == f->newest_acked_sent_at && segment < f->newest_acked);
}

np_time np_board_detect_losses(struct np_flow *f, np_time now) {
    np_time slack = f->state != NP_OPEN || f->sacked >= DUPLICATES ? 0 : f->min_rtt / REORDERING;
    while (f->retransmitted && is_overtaken(f, f->oldest_retransmitted)) {
        uint32_t segment = (uint32_t)f->oldest_retransmitted;
        unlink_retransmitted(f, at(f, segment));
        allow_retransmission(f, segment);
    }
    for (; f->checked_until < f->next; f->checked_until++) {
        struct np_segment *s = at(f, f->checked_until);
        if (s->mark & (NP_SEGMENT_SACKED | NP_SEGMENT_LOST)) continue;
        if (!is_overtaken(f, f->checked_until)) break;
        if (s->sent + f->newest_rtt + slack > now) return s->sent + f->newest_rtt + slack;
        s->mark |= NP_SEGMENT_LOST;
        f->lost++;
        allow_retransmission(f, f->checked_until);
    }
    return NP_NEVER;
}

void np_board_on_timeout(struct np_flow *f) {
    for (uint32_t segment = f->una; segment < f->next; segment++) {
        struct np_segment *s = at(f, segment);
        s->mark &= (uint8_t)~NP_RETRANSMITTED;
        if (s->mark & (NP_SEGMENT_SACKED | NP_SEGMENT_LOST)) continue;
        s->mark |= NP_SEGMENT_LOST;
        f->lost++;
    }
    f->retransmitted = 0;
    f->retransmit_from = f->una;
    f->checked_until = f->next;
}
