/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "tcp.h"

#include <math.h>
#include <stdlib.h>

#include "receiver.h"
#include "scoreboard.h"

enum { MAX_BACKOFF = 64 };

#define PS_PER_SECOND 1e12
#define PROBE_SLACK 2000000000 /* 2 ms: Linux's TCP_TIMEOUT_MIN_US */

static double seconds(const struct np_tcp *t) { return (double)t->network->now / PS_PER_SECOND; }

static void arm(struct np_tcp *t, struct np_flow *f, np_time due) {
    uint32_t owner_id = (uint32_t)(f - t->flows);
    t->network->out_of_memory |= np_timer_set(&t->network->events, &f->timer, due, NP_SENDER, owner_id) < 0;
}

/* Computes the timeout of RFC 6298. */
static np_time timeout(const struct np_tcp *t, const struct np_flow *f) {
    np_time base = t->settings->initial_rto;
    if (f->srtt > 0) base = (np_time)((f->srtt + 4 * f->rttvar) * PS_PER_SECOND);
    if (base < t->settings->min_rto) base = t->settings->min_rto;
    return base * f->backoff;
}

/* Returns when a tail loss probe is due: after two RTTs of silence and, as in Linux, some slack; once, and while no segment is
 * known to be lost. */
static int may_probe(const struct np_flow *f) {
    return f->state == NP_OPEN && !f->lost && !f->sacked && !f->probing && f->srtt > 0;
}

static void restart_timer(struct np_tcp *t, struct np_flow *f) {
    np_time wait = timeout(t, f);
    f->timer_purpose = NP_TIMEOUT;
    if (may_probe(f)) {
        np_time slack = f->next - f->una == 1 ? t->settings->min_rto : PROBE_SLACK;
        np_time silence = (np_time)(2 * f->srtt * PS_PER_SECOND) + slack;
        if (silence < wait) {
            wait = silence;
            f->timer_purpose = NP_PROBE;
        }
    }
    arm(t, f, f->una < f->next ? t->network->now + wait : NP_NEVER);
}

static uint32_t in_flight(const struct np_flow *f) { return f->next - f->una - f->sacked - f->lost + f->retransmitted; }

static void send_data(struct np_tcp *t, struct np_flow *f, uint32_t segment, enum np_kind kind) {
    int32_t packet = np_packet_new(t->network);
    if (packet == NP_NONE) return;
    const struct np_tcp_settings *s = t->settings;
    struct np_packet *p = &t->network->packets[packet];
    int64_t rest = f->bytes - (int64_t)segment * f->segment, bytes = f->segment;
    if (f->stream == NP_NONE && rest < bytes) bytes = rest;
    if (kind == NP_SYN) bytes = 0;
    *p = (struct np_packet){.path = f->forward_path + 1, .owner = (int32_t)(f - t->flows), .kind = (uint8_t)kind};
    p->bytes = (uint16_t)(bytes + s->header_bytes);
    p->ecn = np_uses_ecn(f->transport) && kind == NP_DATA ? NP_ECT : NP_NOT_ECT;
    p->tcp.number = segment;
    p->tcp.stamp = t->network->now;
    np_link_send(t->network, t->hops[f->forward_path], packet);
}

/* Returns whether there was a segment to send. */
static int send_new(struct np_tcp *t, struct np_flow *f) {
    if (f->next >= f->total) return 0;
    if (np_board_reserve(f)) {
        t->network->out_of_memory = 1;
        return 0;
    }
    np_board_on_send(f, f->next, t->network->now);
    send_data(t, f, f->next++, NP_DATA);
    return 1;
}

/* Sends the segments that the window allows: lost ones first, the lowest first. */
static void send_allowed(struct np_tcp *t, struct np_flow *f) {
    int idle = f->una == f->next;
    while ((double)in_flight(f) + 1 <= f->cwnd.size + 1e-9) {
        if (f->lost > f->retransmitted) {
            f->retransmissions++;
            send_data(t, f, np_board_retransmit(f, t->network->now), NP_DATA);
        } else if (!send_new(t, f)) {
            break;
        }
        f->out++;
    }
    if (idle) restart_timer(t, f);
}

static void sample(struct np_flow *f, double rtt) {
    if (f->srtt == 0) {
        f->srtt = rtt;
        f->rttvar = rtt / 2;
        return;
    }
    f->rttvar += (fabs(f->srtt - rtt) - f->rttvar) / 4;
    f->srtt += (rtt - f->srtt) / 8;
}

/* Sends in recovery in proportion to delivery (RFC 6937). */
static void reduce_in_proportion(struct np_flow *f, uint32_t newly_acked) {
    f->delivered += newly_acked;
    double pipe = in_flight(f), capacity;
    if (pipe > f->cwnd.threshold) {
        capacity = ceil(f->delivered * f->cwnd.threshold / f->at_recovery) - f->out;
    } else {
        double limit = fmax(f->delivered - f->out, newly_acked) + 1;
        capacity = fmin(f->cwnd.threshold - pipe, limit);
    }
    f->cwnd.size = pipe + fmax(capacity, f->out == 0 ? 1 : 0);
}

static void recover(struct np_flow *f) {
    if (f->state != NP_OPEN || !f->lost) return;
    f->state = NP_RECOVERY;
    f->recover = f->next;
    f->at_recovery = (double)(f->next - f->una);
    f->delivered = f->out = 0;
    np_cwnd_on_loss(&f->cwnd, f->at_recovery);
}

/* The probe is acknowledged. If it repaired a loss, the window is reduced (RFC 8985, section 7.4.2). */
static void on_probe_acked(struct np_flow *f, const struct np_packet *p) {
    if (!f->probing || f->una < f->probe_until) return;
    f->probing = 0;
    if (!f->probe_is_repeat || f->state != NP_OPEN || p->tcp.stamp < f->probed_at) return;
    np_cwnd_on_loss(&f->cwnd, f->cwnd.size);
    f->cwnd.size = f->cwnd.threshold;
}

static void on_ack(struct np_tcp *t, struct np_flow *f, const struct np_packet *p) {
    if (p->tcp.number < f->una) return;
    uint32_t previous = f->una, newly_acked = np_board_on_ack(f, p, t->network->now), moved = f->una - previous;
    if (moved || newly_acked) sample(f, (double)(t->network->now - p->tcp.stamp) / PS_PER_SECOND);
    if (moved) f->backoff = 1;
    np_cwnd_on_echo(&f->cwnd, moved, p->tcp.echo, f->una, f->next);
    if (f->state >= NP_RECOVERY && f->una >= f->recover) {
        if (f->state == NP_RECOVERY) f->cwnd.size = f->cwnd.threshold;
        f->state = NP_OPEN;
    }
    on_probe_acked(f, p);
    np_time next_check = newly_acked ? np_board_detect_losses(f, t->network->now) : NP_NEVER;
    recover(f);
    if (f->state == NP_RECOVERY)
        reduce_in_proportion(f, newly_acked);
    else if (moved && !f->cwnd.reduced)
        np_cwnd_grow(&f->cwnd, moved, seconds(t), f->srtt);
    if (moved || (f->timer_purpose == NP_PROBE && !may_probe(f))) restart_timer(t, f);
    if (next_check != NP_NEVER) {
        f->timer_purpose = NP_REORDERED;
        arm(t, f, next_check);
    }
    send_allowed(t, f);
    if (f->una == f->total && f->stream == NP_NONE) {
        f->state = NP_CLOSED;
        np_board_free(f);
    }
}

/* Sends a new segment, or the last one again: its acknowledgment reveals other losses. */
static void probe(struct np_tcp *t, struct np_flow *f) {
    f->probing = 1;
    f->probed_at = t->network->now;
    f->probe_is_repeat = !send_new(t, f);
    if (f->probe_is_repeat) {
        f->retransmissions++;
        np_board_on_send(f, f->next - 1, t->network->now);
        send_data(t, f, f->next - 1, NP_DATA);
    }
    f->probe_until = f->next;
    restart_timer(t, f);
}

/* The reordering window has passed. */
static void on_reordering_timer(struct np_tcp *t, struct np_flow *f) {
    np_time next_check = np_board_detect_losses(f, t->network->now);
    recover(f);
    if (f->state == NP_RECOVERY) reduce_in_proportion(f, 0);
    restart_timer(t, f);
    if (next_check != NP_NEVER) {
        f->timer_purpose = NP_REORDERED;
        arm(t, f, next_check);
    }
    send_allowed(t, f);
}

static void on_timeout(struct np_tcp *t, struct np_flow *f) {
    f->timeouts++;
    f->backoff = f->backoff < MAX_BACKOFF ? 2 * f->backoff : MAX_BACKOFF;
    if (f->state == NP_OPENING) {
        send_data(t, f, 0, NP_SYN);
        arm(t, f, t->network->now + timeout(t, f));
        return;
    }
    np_board_on_timeout(f);
    f->probing = 0;
    if (f->state != NP_TIMED_OUT) np_cwnd_on_timeout(&f->cwnd, f->next - f->una);
    f->cwnd.size = 1;
    f->state = NP_TIMED_OUT;
    f->recover = f->next;
    restart_timer(t, f);
    send_allowed(t, f);
}

static void fires(struct np_tcp *t, struct np_flow *f) {
    if (f->state == NP_OPENING)
        on_timeout(t, f);
    else if (f->state == NP_CLOSED || f->una == f->next)
        return;
    else if (f->timer_purpose == NP_PROBE)
        probe(t, f);
    else if (f->timer_purpose == NP_REORDERED)
        on_reordering_timer(t, f);
    else
        on_timeout(t, f);
}

static void establish(struct np_tcp *t, struct np_flow *f) {
    f->state = NP_OPEN;
    f->backoff = 1;
    np_timer_set(&t->network->events, &f->timer, NP_NEVER, NP_SENDER, (uint32_t)(f - t->flows));
    send_allowed(t, f);
}

static void begin(struct np_tcp *t, struct np_flow *f) {
    np_cwnd_init(&f->cwnd, f->transport, (double)t->settings->initial);
    f->backoff = 1;
    if (!t->settings->handshake || f->stream != NP_NONE) {
        establish(t, f);
        return;
    }
    f->state = NP_OPENING;
    send_data(t, f, 0, NP_SYN);
    arm(t, f, t->network->now + timeout(t, f));
}

void np_tcp_start_flows(struct np_tcp *t) {
    while (t->started < t->flow_count && t->flows[t->started].start <= t->network->now) begin(t, &t->flows[t->started++]);
    if (t->started < t->flow_count)
        np_events_postpone_first(&t->network->events, t->flows[t->started].start);
    else
        np_events_pop(&t->network->events);
}

void np_tcp_release(struct np_tcp *t, int32_t flow, uint32_t segments, int64_t bytes) {
    struct np_flow *f = &t->flows[flow];
    f->total += segments;
    f->segment = bytes;
    send_allowed(t, f);
}

void np_tcp_on_packet(struct np_tcp *t, int32_t packet) {
    struct np_packet *p = &t->network->packets[packet];
    int32_t hop = t->hops[p->path];
    if (hop >= 0) {
        p->path++;
        np_link_send(t->network, hop, packet);
        return;
    }
    struct np_flow *f = &t->flows[p->owner];
    struct np_packet received = *p;
    np_packet_free(t->network, packet);
    if (received.kind == NP_DATA || received.kind == NP_SYN)
        np_receiver_on_packet(t, f, &received);
    else if (received.kind == NP_SYN_ACK && f->state == NP_OPENING)
        establish(t, f);
    else if (received.kind == NP_ACK && f->state >= NP_OPEN && f->state != NP_CLOSED)
        on_ack(t, f, &received);
}

void np_tcp_on_timer(struct np_tcp *t, enum np_event_type what, uint32_t flow) {
    struct np_flow *f = &t->flows[flow];
    struct np_timer *timer = what == NP_SENDER ? &f->timer : &f->ack_timer;
    int due = np_timer_fires(&t->network->events, timer, t->network->now, what, flow);
    t->network->out_of_memory |= due < 0;
    if (due <= 0) return;
    timer->due = NP_NEVER;
    if (what == NP_RECEIVER)
        np_receiver_send_ack(t, f);
    else
        fires(t, f);
}

int np_tcp_init(struct np_tcp *t) {
    for (int64_t i = 0; i < t->flow_count; i++) {
        struct np_flow *f = &t->flows[i];
        np_timer_clear(&f->timer);
        np_timer_clear(&f->ack_timer);
        f->end = f->min_rtt = NP_NEVER;
        f->segment = t->settings->segment_bytes;
        f->total = (uint32_t)((f->bytes + f->segment - 1) / f->segment);
    }
    if (!t->flow_count) return 0;
    return np_events_put(&t->network->events, t->flows[0].start, NP_FLOWS, 0);
}

void np_tcp_free(struct np_tcp *t) {
    for (int64_t i = 0; i < t->flow_count; i++) {
        np_board_free(&t->flows[i]);
        free(t->flows[i].ranges);
    }
}
