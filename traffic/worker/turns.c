/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A stretch of a worker's loop without Python: take what has come, send what may go, wait for more. turns.py says when it
 * is used and what it gives back; session.py and flow.py say the same in Python, a turn at a time. */

#define _GNU_SOURCE
#include "spans.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { MAX_ENDPOINTS = 64, NAME_BYTES = 16 };

/* Packets a second, gathered up to a depth (Pacer). per_second 0: no limit. */
struct pacer {
    double tokens, depth, per_second, filled;
};

/* What does not change during a work comes first, then what a stretch begins with and changes, then what it finds. */
struct flow {
    const struct channels *channels;
    const struct span *span;
    struct mmsghdr *out; /* one for each channel; its `pieces` point at the rows that go */
    struct piece *pieces;
    int64_t *order;
    int64_t fd, end;

    int64_t highest, window, under_way, left;
    int64_t patience; /* how many windows of results without a mark may come before they are told of */
    struct pacer pacer;
    double newest_back, reordering; /* what went before newest_back - reordering is lost */
    double probed_at, timeout;      /* what went, and was probed for, so long ago is overdue */

    struct matched found;
    double rtt_sum;                   /* seconds, over found.fresh */
    double first_back, last_back;     /* when the first and the last result came */
    int64_t order_taken, order_count; /* of the last packets to go, how many the socket took */
    int64_t held_back;
};

struct stretch {
    struct flow *const *flows;
    int64_t flow_count;
    const int32_t *fds; /* one for each endpoint */
    int64_t fd_count;
    struct mmsghdr *in;
    const uint8_t *records;
    const uint8_t *control;
    int64_t capacity;
    double until, timers_at; /* monotonic seconds: the end; and from when on packets may be taken for lost */
    double received_at;      /* when the last packets came */
    int64_t error;           /* errno of a receive that failed */
    int64_t lacking;         /* some packets are to go again */
};

static double monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct timespec span_of(double seconds) {
    if (seconds < 0) seconds = 0;
    time_t whole = (time_t)seconds;
    return (struct timespec){whole, (long)(1e9 * (seconds - (double)whole))};
}

/* What the kernel wrote into a message, undone. */
static void renew(const struct stretch *s, int count) {
    for (int i = 0; i < count; i++) {
        s->in[i].msg_hdr.msg_namelen = NAME_BYTES;
        if (s->control) s->in[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
}

static void take_results(struct flow *f, const struct batch *batch, double now) {
    struct matched found;
    nf_take(f->channels, f->span, batch, &found);
    if (!found.count) return;
    if (!f->found.count) f->first_back = now;
    f->last_back = now;
    f->found.count += found.count;
    f->found.marked += found.marked;
    f->found.overflowed += found.overflowed;
    f->found.fresh += found.fresh;
    f->rtt_sum += (double)found.fresh * now - found.sent_sum;
    if (found.sent_max > f->found.sent_max) f->found.sent_max = found.sent_max;
    f->under_way -= found.count;
    f->left -= found.count;
}

static int64_t receive(struct stretch *s) {
    int64_t total = 0;
    for (int64_t e = 0; e < s->fd_count; e++) {
        int count = recvmmsg(s->fds[e], s->in, (unsigned)s->capacity, MSG_DONTWAIT, NULL);
        if (count < 0) {
            if (errno != EAGAIN && errno != EINTR) s->error = errno;
            continue;
        }
        struct batch batch = {s->records, count, (const struct message *)s->in, s->control};
        double now = monotonic();
        for (int64_t i = 0; i < s->flow_count; i++)
            if (s->flows[i]->left) take_results(s->flows[i], &batch, now);
        renew(s, count);
        total += count;
    }
    return total;
}

static int64_t allowance(struct pacer *p, double now) {
    if (p->per_second == 0) return INT64_MAX;
    p->tokens += (now - p->filled) * p->per_second;
    if (p->tokens > p->depth) p->tokens = p->depth;
    p->filled = now;
    return p->tokens > 0 ? (int64_t)p->tokens : 0;
}

/* Sends what the window and the pacer let go; 0: the socket took less. */
static int pump(struct flow *f, double now) {
    struct emitted out;
    f->held_back = 0;
    if (f->left == f->under_way) return 1;
    int64_t room = at_least(0, f->window - f->under_way);
    nf_emit(f->channels, f->span, f->end, f->highest, room, allowance(&f->pacer, now), now, f->pieces, f->order, &out);
    f->held_back = out.held_back;
    f->highest = out.highest;
    f->under_way += out.count;
    f->pacer.tokens -= (double)out.count;
    f->order_count = out.count;
    f->order_taken = 0;
    while (f->order_taken < out.count) {
        int took = sendmmsg((int)f->fd, f->out + f->order_taken, (unsigned)(out.count - f->order_taken), 0);
        if (took < 0) return 0;
        f->order_taken += took;
    }
    return 1;
}

/* Until something can be read, the stretch is over, or a pacer lets a quarter of its depth go. */
static void wait_for_packets(const struct stretch *s, double now) {
    struct pollfd polled[MAX_ENDPOINTS];
    double until = s->until;
    for (int64_t e = 0; e < s->fd_count; e++) polled[e] = (struct pollfd){s->fds[e], POLLIN, 0};
    for (int64_t i = 0; i < s->flow_count; i++) {
        const struct pacer *p = &s->flows[i]->pacer;
        if (!s->flows[i]->held_back) continue;
        double filled = now + (p->depth / 4 - p->tokens) / p->per_second;
        if (filled < until) until = filled;
    }
    struct timespec t = span_of(until - now);
    ppoll(polled, (nfds_t)s->fd_count, &t, NULL);
}

/* Whether a packet of the flow is lost or overdue (Flow.on_timer). */
static int lacking(const struct flow *f, double now) {
    const struct channels *c = f->channels;
    double newest = f->found.sent_max > f->newest_back ? f->found.sent_max : f->newest_back;
    double oldest = now;
    for (int64_t i = 0; i < c->count; i++)
        if (c->busy[i] && c->sent_at[i] < oldest) oldest = c->sent_at[i];
    double asked = !f->found.count && f->probed_at > oldest ? f->probed_at : oldest;
    return oldest < newest - f->reordering || now - asked >= f->timeout;
}

/* Whether there is something to decide that is not decided here: a flow is done, a window of its results is in (or some
 * without a mark), or packets are to go again. */
static int decisive(struct stretch *s, double now) {
    for (int64_t i = 0; i < s->flow_count; i++) {
        const struct flow *f = s->flows[i];
        if (now >= s->timers_at && lacking(f, now)) s->lacking = 1;
        if (!f->left || f->found.count >= f->window * (f->found.marked ? 1 : f->patience)) return 1;
    }
    return s->lacking || s->error;
}

static void begin(struct stretch *s) {
    s->error = s->lacking = 0;
    for (int64_t i = 0; i < s->flow_count; i++) {
        struct flow *f = s->flows[i];
        memset(&f->found, 0, sizeof *f - offsetof(struct flow, found));
    }
}

/* Moves packets until `until`, or something is to be decided, or a socket takes less than it was given. */
void nf_turns(struct stretch *s) {
    begin(s);
    for (;;) {
        int64_t got = receive(s);
        double now = monotonic();
        if (got) s->received_at = now;
        if (decisive(s, now)) return;
        for (int64_t i = 0; i < s->flow_count; i++)
            if (!pump(s->flows[i], now)) return;
        if (now >= s->until) return;
        if (!got) wait_for_packets(s, now);
    }
}
