/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "scoreboard.h"

#include <stdlib.h>

enum { DUPLICATES = 3, FIRST_ROOM = 64, REORDERING = 4 };

static struct np_segment *at(const struct np_flow *f, int64_t segment) {
    return &f->segments[(uint64_t)segment & (f->segment_room - 1)];
}

int np_board_room(struct np_flow *f) {
    if (f->next - f->una < f->segment_room) return 0;
    uint32_t room = f->segment_room ? 2 * f->segment_room : FIRST_ROOM;
    struct np_segment *segments = calloc(room, sizeof *segments);
    if (!segments) return -1;
    for (uint32_t i = f->una; i != f->next; i++) segments[i & (room - 1)] = *at(f, i);
    free(f->segments);
    f->segments = segments;
    f->segment_room = room;
    return 0;
}

void np_board_free(struct np_flow *f) {
    free(f->segments);
    f->segments = NULL;
    f->segment_room = 0;
}

static void append(struct np_flow *f, uint32_t segment) {
    struct np_segment *s = at(f, segment);
    s->before = f->resent ? f->newest_again : NP_NO_SEGMENT;
    s->behind = NP_NO_SEGMENT;
    if (f->resent)
        at(f, f->newest_again)->behind = segment;
    else
        f->eldest_again = segment;
    f->newest_again = segment;
    f->resent++;
    s->mark |= NP_RESENT;
}

static void take_out(struct np_flow *f, struct np_segment *s) {
    if (s->before != NP_NO_SEGMENT)
        at(f, s->before)->behind = s->behind;
    else
        f->eldest_again = s->behind;
    if (s->behind != NP_NO_SEGMENT)
        at(f, s->behind)->before = s->before;
    else
        f->newest_again = s->before;
    f->resent--;
    s->mark &= (uint8_t)~NP_RESENT;
}

void np_board_sent(struct np_flow *f, uint32_t segment, np_time now) {
    struct np_segment *s = at(f, segment);
    s->mark = segment == f->next ? 0 : s->mark | NP_TWICE;
    s->sent = now;
}

uint32_t np_board_again(struct np_flow *f, np_time now) {
    while ((at(f, f->hole)->mark & (NP_LOST | NP_RESENT)) != NP_LOST) f->hole++;
    append(f, f->hole);
    np_board_sent(f, f->hole, now);
    return f->hole++;
}

static void may_go_again(struct np_flow *f, uint32_t segment) {
    if (segment < f->hole) f->hole = segment;
}

/* Of those that are known to be there, the one that went last. What went twice and is back within less than a round trip is
 * the first one of both. */
static void note_delivery(struct np_flow *f, uint32_t segment, np_time now) {
    const struct np_segment *s = at(f, segment);
    np_time trip = now - s->sent;
    if (s->mark & NP_TWICE && trip < f->least_trip) return;
    if (trip < f->least_trip) f->least_trip = trip;
    if (s->sent < f->newest_sent || (s->sent == f->newest_sent && segment < f->newest)) return;
    f->newest_sent = s->sent;
    f->newest = segment;
    f->newest_trip = trip;
}

static void forget_loss(struct np_flow *f, struct np_segment *s) {
    if (s->mark & NP_RESENT) take_out(f, s);
    f->lost -= (s->mark & NP_LOST) != 0;
}

static uint32_t selectively(struct np_flow *f, uint32_t segment, np_time now) {
    struct np_segment *s = at(f, segment);
    if (s->mark & NP_SACKED) return 0;
    note_delivery(f, segment, now);
    forget_loss(f, s);
    s->mark = NP_SACKED;
    f->sacked++;
    return 1;
}

uint32_t np_board_take(struct np_flow *f, const struct np_packet *p, np_time now) {
    uint32_t news = 0;
    for (int i = 0; i < p->tcp.blocks; i++) {
        uint32_t first = p->tcp.block[i][0] > f->una ? p->tcp.block[i][0] : f->una;
        for (uint32_t s = first; s < p->tcp.block[i][1] && s < f->next; s++) news += selectively(f, s, now);
    }
    for (; f->una < p->tcp.number; f->una++) {
        struct np_segment *s = at(f, f->una);
        if (s->mark & NP_SACKED) {
            f->sacked--;
        } else {
            news++;
            note_delivery(f, f->una, now);
            forget_loss(f, s);
        }
    }
    if (f->hole < f->una) f->hole = f->una;
    if (f->judged < f->una) f->judged = f->una;
    return news;
}

/* Whether it went before the newest that is there. */
static int overtaken(const struct np_flow *f, int64_t segment) {
    np_time sent = at(f, segment)->sent;
    return sent < f->newest_sent || (sent == f->newest_sent && segment < f->newest);
}

np_time np_board_judge(struct np_flow *f, np_time now) {
    np_time slack = f->state != NP_OPEN || f->sacked >= DUPLICATES ? 0 : f->least_trip / REORDERING;
    while (f->resent && overtaken(f, f->eldest_again)) {
        uint32_t segment = (uint32_t)f->eldest_again;
        take_out(f, at(f, segment));
        may_go_again(f, segment);
    }
    for (; f->judged < f->next; f->judged++) {
        struct np_segment *s = at(f, f->judged);
        if (s->mark & (NP_SACKED | NP_LOST)) continue;
        if (!overtaken(f, f->judged)) break;
        if (s->sent + f->newest_trip + slack > now) return s->sent + f->newest_trip + slack;
        s->mark |= NP_LOST;
        f->lost++;
        may_go_again(f, f->judged);
    }
    return NP_NEVER;
}

void np_board_all_lost(struct np_flow *f) {
    for (uint32_t segment = f->una; segment < f->next; segment++) {
        struct np_segment *s = at(f, segment);
        s->mark &= (uint8_t)~NP_RESENT;
        if (s->mark & (NP_SACKED | NP_LOST)) continue;
        s->mark |= NP_LOST;
        f->lost++;
    }
    f->resent = 0;
    f->hole = f->una;
    f->judged = f->next;
}
