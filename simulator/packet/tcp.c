/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "tcp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "receiver.h"

enum { SACKED = 1, LOST = 2, RESENT = 4, DUPLICATES = 3, FIRST_MARKS = 64, BACKOFF_MOST = 64 };

#define PS_PER_SECOND 1e12

static double seconds(const struct np_tcp *t) { return (double)t->network->now / PS_PER_SECOND; }

static uint8_t *mark_of(struct np_flow *f, uint32_t segment) { return &f->marks[segment & (f->mark_room - 1)]; }

static void arm(struct np_tcp *t, struct np_flow *f, np_time due) {
    uint32_t whose = (uint32_t)(f - t->flows);
    t->network->broken |= np_timer_set(&t->network->events, &f->timer, due, NP_SENDER, whose) < 0;
}

/* RFC 6298. */
static np_time timeout(const struct np_tcp *t, const struct np_flow *f) {
    np_time base = t->settings->first_timeout;
    if (f->smoothed > 0) base = (np_time)((f->smoothed + 4 * f->variation) * PS_PER_SECOND);
    if (base < t->settings->least_timeout) base = t->settings->least_timeout;
    return base * f->backoff;
}

static void restart_timer(struct np_tcp *t, struct np_flow *f) {
    arm(t, f, f->una < f->next ? t->network->now + timeout(t, f) : NP_NEVER);
}

static uint32_t under_way(const struct np_flow *f) { return f->next - f->una - f->sacked - f->lost + f->resent; }

static void send_data(struct np_tcp *t, struct np_flow *f, uint32_t segment, enum np_kind kind) {
    int32_t packet = np_packet_new(t->network);
    if (packet == NP_NOBODY) return;
    const struct np_tcp_settings *s = t->settings;
    struct np_packet *p = &t->network->packets[packet];
    int64_t rest = f->bytes - (int64_t)segment * f->segment, bytes = f->segment;
    if (f->stream == NP_NOBODY && rest < bytes) bytes = rest;
    if (kind == NP_SYN) bytes = 0;
    *p = (struct np_packet){.way = f->there + 1, .owner = (int32_t)(f - t->flows), .kind = (uint8_t)kind};
    p->bytes = (uint16_t)(bytes + s->header_bytes);
    p->ecn = np_capable(f->transport) && kind == NP_DATA ? NP_ECT : NP_NOT_ECT;
    p->tcp.number = segment;
    p->tcp.stamp = t->network->now;
    np_line_send(t->network, t->hops[f->there], packet);
}

static int make_room(struct np_tcp *t, struct np_flow *f) {
    if (f->next - f->una < f->mark_room) return 1;
    uint32_t room = f->mark_room ? 2 * f->mark_room : FIRST_MARKS;
    uint8_t *marks = calloc(room, 1);
    if (!marks) {
        t->network->broken = 1;
        return 0;
    }
    for (uint32_t i = f->una; i != f->next; i++) marks[i & (room - 1)] = *mark_of(f, i);
    free(f->marks);
    f->marks = marks;
    f->mark_room = room;
    return 1;
}

/* What the window lets go: lost segments first, the lowest first. */
static void send_what_may(struct np_tcp *t, struct np_flow *f) {
    int idle = f->una == f->next;
    while ((double)under_way(f) + 1 <= f->cwnd.size + 1e-9) {
        if (f->lost > f->resent) {
            while (!(*mark_of(f, f->hole) & LOST) || *mark_of(f, f->hole) & RESENT) f->hole++;
            *mark_of(f, f->hole) |= RESENT;
            f->resent++;
            f->again++;
            send_data(t, f, f->hole++, NP_DATA);
        } else if (f->next < f->total && make_room(t, f)) {
            *mark_of(f, f->next) = 0;
            send_data(t, f, f->next++, NP_DATA);
        } else {
            break;
        }
        f->out++;
    }
    if (idle) restart_timer(t, f);
}

static void sample(struct np_flow *f, double rtt) {
    if (f->smoothed == 0) {
        f->smoothed = rtt;
        f->variation = rtt / 2;
        return;
    }
    f->variation += (fabs(f->smoothed - rtt) - f->variation) / 4;
    f->smoothed += (rtt - f->smoothed) / 8;
}

static void mark_lost(struct np_flow *f, uint32_t segment) {
    uint8_t *mark = mark_of(f, segment);
    if (*mark & (SACKED | LOST)) return;
    *mark |= LOST;
    f->lost++;
    if (segment < f->hole) f->hole = segment;
}

/* It is at the receiver; gives how many became known. */
static uint32_t mark_there(struct np_flow *f, uint32_t segment) {
    uint8_t *mark = mark_of(f, segment);
    if (*mark & SACKED) return 0;
    if (*mark & LOST) {
        f->lost--;
        f->resent -= (*mark & RESENT) != 0;
    }
    *mark = SACKED;
    f->sacked++;
    for (uint32_t i = 0, moved = segment; i < DUPLICATES; i++) {
        if (moved <= f->high[i]) continue;
        uint32_t lower = f->high[i];
        f->high[i] = moved;
        moved = lower;
    }
    return 1;
}

/* Takes acknowledgments in; gives how many segments became known to be there. */
static uint32_t take(struct np_flow *f, const struct np_packet *p) {
    uint32_t news = 0;
    for (int i = 0; i < p->tcp.blocks; i++) {
        uint32_t first = p->tcp.block[i][0] > f->una ? p->tcp.block[i][0] : f->una;
        for (uint32_t s = first; s < p->tcp.block[i][1] && s < f->next; s++) news += mark_there(f, s);
    }
    for (; f->una < p->tcp.number; f->una++) {
        uint8_t *mark = mark_of(f, f->una);
        if (*mark & SACKED) {
            f->sacked--;
        } else {
            news++;
            f->lost -= (*mark & LOST) != 0;
            f->resent -= (*mark & RESENT) != 0;
        }
        *mark = 0;
    }
    if (f->hole < f->una) f->hole = f->una;
    uint32_t below = f->high[DUPLICATES - 1]; /* so many are known above each segment below */
    if (f->judged < f->una) f->judged = f->una;
    for (; f->sacked >= DUPLICATES && f->judged < below; f->judged++) mark_lost(f, f->judged);
    return news;
}

/* RFC 6937: while what is lost is repaired, what goes is in proportion to what arrives. */
static void reduce_in_proportion(struct np_flow *f, uint32_t news) {
    f->delivered += news;
    double pipe = under_way(f), room;
    if (pipe > f->cwnd.threshold) {
        room = ceil(f->delivered * f->cwnd.threshold / f->at_recovery) - f->out;
    } else {
        double limit = fmax(f->delivered - f->out, news) + 1;
        room = fmin(f->cwnd.threshold - pipe, limit);
    }
    f->cwnd.size = pipe + fmax(room, f->out == 0 ? 1 : 0);
}

static void acknowledged(struct np_tcp *t, struct np_flow *f, const struct np_packet *p) {
    if (p->tcp.number < f->una) return;
    uint32_t before = f->una, news = take(f, p), moved = f->una - before;
    if (moved || news) sample(f, (double)(t->network->now - p->tcp.stamp) / PS_PER_SECOND);
    if (moved) f->backoff = 1;
    np_cwnd_echo(&f->cwnd, moved, p->tcp.echo, f->una, f->next);
    if (f->state >= NP_RECOVERY && f->una >= f->recover) {
        if (f->state == NP_RECOVERY) f->cwnd.size = f->cwnd.threshold;
        f->state = NP_OPEN;
    }
    if (f->state == NP_OPEN && f->lost) {
        f->state = NP_RECOVERY;
        f->recover = f->next;
        f->at_recovery = (double)(f->next - f->una);
        f->delivered = f->out = 0;
        np_cwnd_loss(&f->cwnd, f->at_recovery);
    }
    if (f->state == NP_RECOVERY)
        reduce_in_proportion(f, news);
    else if (moved && !f->cwnd.reduced)
        np_cwnd_grow(&f->cwnd, moved, seconds(t), f->smoothed);
    if (moved) restart_timer(t, f);
    send_what_may(t, f);
    if (f->una == f->total && f->stream == NP_NOBODY) {
        f->state = NP_OVER;
        free(f->marks);
        f->marks = NULL;
        f->mark_room = 0;
    }
}

static void timed_out(struct np_tcp *t, struct np_flow *f) {
    f->timeouts++;
    f->backoff = f->backoff < BACKOFF_MOST ? 2 * f->backoff : BACKOFF_MOST;
    if (f->state == NP_OPENING) {
        send_data(t, f, 0, NP_SYN);
        arm(t, f, t->network->now + timeout(t, f));
        return;
    }
    if (f->una == f->next) return;
    for (uint32_t s = f->una; s < f->next; s++) {
        *mark_of(f, s) &= (uint8_t)~RESENT;
        mark_lost(f, s);
    }
    f->resent = 0;
    f->hole = f->una;
    if (f->state != NP_TIMED_OUT) np_cwnd_timeout(&f->cwnd, f->next - f->una);
    f->cwnd.size = 1;
    f->state = NP_TIMED_OUT;
    f->recover = f->next;
    restart_timer(t, f);
    send_what_may(t, f);
}

static void open_up(struct np_tcp *t, struct np_flow *f) {
    f->state = NP_OPEN;
    f->backoff = 1;
    np_timer_set(&t->network->events, &f->timer, NP_NEVER, NP_SENDER, (uint32_t)(f - t->flows));
    send_what_may(t, f);
}

static void begin(struct np_tcp *t, struct np_flow *f) {
    np_cwnd_start(&f->cwnd, f->transport, (double)t->settings->initial);
    f->backoff = 1;
    if (!t->settings->handshake || f->stream != NP_NOBODY) {
        open_up(t, f);
        return;
    }
    f->state = NP_OPENING;
    send_data(t, f, 0, NP_SYN);
    arm(t, f, t->network->now + timeout(t, f));
}

void np_tcp_begin(struct np_tcp *t) {
    while (t->begun < t->flow_count && t->flows[t->begun].start <= t->network->now)
        begin(t, &t->flows[t->begun++]);
    if (t->begun < t->flow_count)
        np_events_put_off(&t->network->events, t->flows[t->begun].start);
    else
        np_events_pop(&t->network->events);
}

void np_tcp_release(struct np_tcp *t, int32_t flow, uint32_t segments, int64_t bytes) {
    struct np_flow *f = &t->flows[flow];
    f->total += segments;
    f->segment = bytes;
    send_what_may(t, f);
}

void np_tcp_packet(struct np_tcp *t, int32_t packet) {
    struct np_packet *p = &t->network->packets[packet];
    int32_t hop = t->hops[p->way];
    if (hop >= 0) {
        p->way++;
        np_line_send(t->network, hop, packet);
        return;
    }
    struct np_flow *f = &t->flows[p->owner];
    struct np_packet came = *p;
    np_packet_free(t->network, packet);
    if (came.kind == NP_DATA || came.kind == NP_SYN)
        np_receiver_packet(t, f, &came);
    else if (came.kind == NP_SYN_ACK && f->state == NP_OPENING)
        open_up(t, f);
    else if (came.kind == NP_ACK && f->state >= NP_OPEN && f->state != NP_OVER)
        acknowledged(t, f, &came);
}

void np_tcp_timer(struct np_tcp *t, enum np_what what, uint32_t flow) {
    struct np_flow *f = &t->flows[flow];
    struct np_timer *timer = what == NP_SENDER ? &f->timer : &f->ack_timer;
    int rings = np_timer_rings(&t->network->events, timer, t->network->now, what, flow);
    t->network->broken |= rings < 0;
    if (rings <= 0) return;
    timer->due = NP_NEVER;
    if (what == NP_RECEIVER)
        np_receiver_answer(t, f);
    else if (f->state != NP_OVER)
        timed_out(t, f);
}

int np_tcp_start(struct np_tcp *t) {
    for (int64_t i = 0; i < t->flow_count; i++) {
        struct np_flow *f = &t->flows[i];
        np_timer_clear(&f->timer);
        np_timer_clear(&f->ack_timer);
        f->end = NP_NEVER;
        f->segment = t->settings->segment_bytes;
        f->total = (uint32_t)((f->bytes + f->segment - 1) / f->segment);
    }
    if (!t->flow_count) return 0;
    return np_events_put(&t->network->events, t->flows[0].start, NP_FLOWS, 0);
}

void np_tcp_stop(struct np_tcp *t) {
    for (int64_t i = 0; i < t->flow_count; i++) {
        free(t->flows[i].marks);
        free(t->flows[i].ranges);
    }
}
