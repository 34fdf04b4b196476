/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "tcp.h"

#include <math.h>
#include <stdlib.h>

#include "receiver.h"
#include "scoreboard.h"

enum { BACKOFF_MOST = 64 };

#define PS_PER_SECOND 1e12
#define PROBE_SLACK 2000000000 /* 2 ms: Linux's TCP_TIMEOUT_MIN_US */

static double seconds(const struct np_tcp *t) { return (double)t->network->now / PS_PER_SECOND; }

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

/* After two round trips of silence and, as Linux has it, some slack: once, while nothing is known to be missing. */
static int may_probe(const struct np_flow *f) {
    return f->state == NP_OPEN && !f->lost && !f->sacked && !f->probing && f->smoothed > 0;
}

static void restart_timer(struct np_tcp *t, struct np_flow *f) {
    np_time wait = timeout(t, f);
    f->alarm = NP_TIMEOUT;
    if (may_probe(f)) {
        np_time slack = f->next - f->una == 1 ? t->settings->least_timeout : PROBE_SLACK;
        np_time silence = (np_time)(2 * f->smoothed * PS_PER_SECOND) + slack;
        if (silence < wait) {
            wait = silence;
            f->alarm = NP_PROBE;
        }
    }
    arm(t, f, f->una < f->next ? t->network->now + wait : NP_NEVER);
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

/* Whether there was one, and room for it. */
static int send_new(struct np_tcp *t, struct np_flow *f) {
    if (f->next >= f->total) return 0;
    if (np_board_room(f)) {
        t->network->broken = 1;
        return 0;
    }
    np_board_sent(f, f->next, t->network->now);
    send_data(t, f, f->next++, NP_DATA);
    return 1;
}

/* What the window lets go: lost segments first, the lowest first. */
static void send_what_may(struct np_tcp *t, struct np_flow *f) {
    int idle = f->una == f->next;
    while ((double)under_way(f) + 1 <= f->cwnd.size + 1e-9) {
        if (f->lost > f->resent) {
            f->again++;
            send_data(t, f, np_board_again(f, t->network->now), NP_DATA);
        } else if (!send_new(t, f)) {
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

static void recover(struct np_flow *f) {
    if (f->state != NP_OPEN || !f->lost) return;
    f->state = NP_RECOVERY;
    f->recover = f->next;
    f->at_recovery = (double)(f->next - f->una);
    f->delivered = f->out = 0;
    np_cwnd_loss(&f->cwnd, f->at_recovery);
}

/* The probe is answered. If it repaired a loss, the window has to know (RFC 8985, 7.4.2). */
static void probe_answered(struct np_flow *f, const struct np_packet *p) {
    if (!f->probing || f->una < f->probe_until) return;
    f->probing = 0;
    if (!f->repeating || f->state != NP_OPEN || p->tcp.stamp < f->probed) return;
    np_cwnd_loss(&f->cwnd, f->cwnd.size);
    f->cwnd.size = f->cwnd.threshold;
}

static void acknowledged(struct np_tcp *t, struct np_flow *f, const struct np_packet *p) {
    if (p->tcp.number < f->una) return;
    uint32_t before = f->una, news = np_board_take(f, p, t->network->now), moved = f->una - before;
    if (moved || news) sample(f, (double)(t->network->now - p->tcp.stamp) / PS_PER_SECOND);
    if (moved) f->backoff = 1;
    np_cwnd_echo(&f->cwnd, moved, p->tcp.echo, f->una, f->next);
    if (f->state >= NP_RECOVERY && f->una >= f->recover) {
        if (f->state == NP_RECOVERY) f->cwnd.size = f->cwnd.threshold;
        f->state = NP_OPEN;
    }
    probe_answered(f, p);
    np_time look = news ? np_board_judge(f, t->network->now) : NP_NEVER;
    recover(f);
    if (f->state == NP_RECOVERY)
        reduce_in_proportion(f, news);
    else if (moved && !f->cwnd.reduced)
        np_cwnd_grow(&f->cwnd, moved, seconds(t), f->smoothed);
    if (moved || (f->alarm == NP_PROBE && !may_probe(f))) restart_timer(t, f);
    if (look != NP_NEVER) {
        f->alarm = NP_REORDERED;
        arm(t, f, look);
    }
    send_what_may(t, f);
    if (f->una == f->total && f->stream == NP_NOBODY) {
        f->state = NP_OVER;
        np_board_free(f);
    }
}

/* A new segment, or the last one again: its acknowledgment tells what else is missing. */
static void probe(struct np_tcp *t, struct np_flow *f) {
    f->probing = 1;
    f->probed = t->network->now;
    f->repeating = !send_new(t, f);
    if (f->repeating) {
        f->again++;
        np_board_sent(f, f->next - 1, t->network->now);
        send_data(t, f, f->next - 1, NP_DATA);
    }
    f->probe_until = f->next;
    restart_timer(t, f);
}

/* Long enough for what went before to have come, if it was only overtaken. */
static void reordered(struct np_tcp *t, struct np_flow *f) {
    np_time look = np_board_judge(f, t->network->now);
    recover(f);
    if (f->state == NP_RECOVERY) reduce_in_proportion(f, 0);
    restart_timer(t, f);
    if (look != NP_NEVER) {
        f->alarm = NP_REORDERED;
        arm(t, f, look);
    }
    send_what_may(t, f);
}

static void timed_out(struct np_tcp *t, struct np_flow *f) {
    f->timeouts++;
    f->backoff = f->backoff < BACKOFF_MOST ? 2 * f->backoff : BACKOFF_MOST;
    if (f->state == NP_OPENING) {
        send_data(t, f, 0, NP_SYN);
        arm(t, f, t->network->now + timeout(t, f));
        return;
    }
    np_board_all_lost(f);
    f->probing = 0;
    if (f->state != NP_TIMED_OUT) np_cwnd_timeout(&f->cwnd, f->next - f->una);
    f->cwnd.size = 1;
    f->state = NP_TIMED_OUT;
    f->recover = f->next;
    restart_timer(t, f);
    send_what_may(t, f);
}

static void rings(struct np_tcp *t, struct np_flow *f) {
    if (f->state == NP_OPENING)
        timed_out(t, f);
    else if (f->state == NP_OVER || f->una == f->next)
        return;
    else if (f->alarm == NP_PROBE)
        probe(t, f);
    else if (f->alarm == NP_REORDERED)
        reordered(t, f);
    else
        timed_out(t, f);
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
    int due = np_timer_rings(&t->network->events, timer, t->network->now, what, flow);
    t->network->broken |= due < 0;
    if (due <= 0) return;
    timer->due = NP_NEVER;
    if (what == NP_RECEIVER)
        np_receiver_answer(t, f);
    else
        rings(t, f);
}

int np_tcp_start(struct np_tcp *t) {
    for (int64_t i = 0; i < t->flow_count; i++) {
        struct np_flow *f = &t->flows[i];
        np_timer_clear(&f->timer);
        np_timer_clear(&f->ack_timer);
        f->end = f->least_trip = NP_NEVER;
        f->segment = t->settings->segment_bytes;
        f->total = (uint32_t)((f->bytes + f->segment - 1) / f->segment);
    }
    if (!t->flow_count) return 0;
    return np_events_put(&t->network->events, t->flows[0].start, NP_FLOWS, 0);
}

void np_tcp_stop(struct np_tcp *t) {
    for (int64_t i = 0; i < t->flow_count; i++) {
        np_board_free(&t->flows[i]);
        free(t->flows[i].ranges);
    }
}
