/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "numbers.h"

enum { MOST_BLOCKS = 16 };

/* A tree's part of a call: messages `total`, of which `data` after the first `ahead` have data. The call's `sent` and `received`
 * of them; what is not acknowledged is the link's, and may be of the call before. */
struct stream {
    struct nr_link *link;
    const struct nr_assignment *assignment;
    struct nr_call *call;
    uint32_t index;
    size_t first, count, of_message, of_block, blocks;
    uint64_t ahead, data, total, sent, received;
    int scales[NR_UNDER_WAY][MOST_BLOCKS]; /* of message m at m % ahead */
};

double nr_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- cutting ---- */

static void cut(struct stream *s, struct nr_call *call, const struct nr_assignment *a, struct nr_link *links,
                uint32_t index) {
    double before = 0;
    for (uint32_t i = 0; i < index; i++) before += a->tree[i].share;
    bool last = index + 1 == a->trees;
    size_t end = last ? call->elements : (size_t)((before + a->tree[index].share) * (double)call->elements);
    memset(s, 0, sizeof *s);
    s->link = &links[index];
    s->assignment = a;
    s->call = call;
    s->index = index;
    s->first = (size_t)(before * (double)call->elements);
    s->count = end > s->first ? end - s->first : 0;
    size_t packets = s->link->packets - 1;
    s->of_message = packets * a->lanes;
    s->blocks = nr_blocks(a->lanes, a->workers);
    if (s->blocks > MOST_BLOCKS) s->blocks = MOST_BLOCKS;
    if (s->blocks > packets) s->blocks = packets;
    if (s->blocks > 0) s->of_block = (packets + s->blocks - 1) / s->blocks * a->lanes;
    s->data = (s->count + s->of_message - 1) / s->of_message;
    s->ahead = call->kind == NR_KIND_BLOCK && s->data > 0 ? s->link->credit : 0;
    s->total = s->ahead + s->data + 1;
}

static bool has_data(const struct stream *s, uint64_t message) {
    return message >= s->ahead && message < s->ahead + s->data;
}

/* Where a message's elements begin in the array, and how many it has. */
static size_t begin_of(const struct stream *s, uint64_t message) {
    return s->first + (size_t)(message - s->ahead) * s->of_message;
}

static size_t count_of(const struct stream *s, uint64_t message) {
    if (!has_data(s, message)) return 0;
    size_t left = s->first + s->count - begin_of(s, message);
    return left < s->of_message ? left : s->of_message;
}

static uint32_t packets_of(const struct stream *s, uint64_t message) {
    size_t lanes = s->assignment->lanes;
    return 1 + (uint32_t)((count_of(s, message) + lanes - 1) / lanes);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

uint64_t nr_call_packets(const struct nr_call *call, const struct nr_assignment *a, const struct nr_link *links) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < a->trees; i++) {
        struct stream s;
        cut(&s, (struct nr_call *)(uintptr_t)call, a, (struct nr_link *)(uintptr_t)links, i);
        uint64_t packets = s.total + (s.count + a->lanes - 1) / a->lanes;
        if (packets > most) most = packets;
    }
    return most;
}

/* ---- a message there and back ---- */

static uint64_t identity(const struct stream *s, uint64_t message) {
    uint64_t hash = nr_mixed(s->assignment->epoch, s->call->number);
    hash = nr_mixed(hash, message);
    hash = nr_mixed(hash, s->call->elements);
    hash = nr_mixed(hash, (uint64_t)s->call->kind << 8 | (uint64_t)s->call->op);
    return nr_mixed(hash, s->index);
}

static void write_bytes(struct stream *s, uint32_t *header, uint64_t of_message) {
    if (s->call->kind != NR_KIND_BLOCK || !has_data(s, of_message)) return;
    const float *values = (const float *)s->call->from + begin_of(s, of_message);
    size_t count = count_of(s, of_message);
    for (size_t b = 0; b * s->of_block < count; b++) {
        size_t at = b * s->of_block;
        int byte = nr_exponent_byte(values + at, smaller(s->of_block, count - at));
        nr_write_byte(header, b, s->assignment->workers, byte);
    }
}

static void read_bytes(struct stream *s, const uint32_t *header, uint64_t of_message) {
    if (s->call->kind != NR_KIND_BLOCK || !has_data(s, of_message)) return;
    size_t workers = s->assignment->workers, count = count_of(s, of_message);
    for (size_t b = 0; b * s->of_block < count; b++) {
        int byte = nr_read_byte(header, b, workers);
        if (byte == NR_NOT_FINITE) s->call->not_finite = true;
        s->scales[of_message % s->ahead][b] = nr_scale(byte, workers);
    }
}

static void write_data(struct stream *s, uint32_t *lanes, uint64_t message) {
    size_t count = count_of(s, message), at = begin_of(s, message);
    size_t whole = (packets_of(s, message) - 1) * (size_t)s->assignment->lanes;
    memset(lanes + count, 0, 4 * (whole - count));
    if (s->call->from == NULL) {
        for (size_t i = 0; i < count; i++) lanes[i] = s->assignment->floats ? 1u << 31 : 0;
    } else if (s->assignment->floats) {
        memcpy(lanes, (const float *)s->call->from + at, 4 * count);
    } else if (s->call->kind == NR_KIND_BLOCK) {
        const float *values = (const float *)s->call->from + at;
        for (size_t b = 0; b * s->of_block < count; b++) {
            size_t begin = b * s->of_block, some = smaller(s->of_block, count - begin);
            if (s->call->not_finite) /* the call is lost: it only keeps in step */
                memset(lanes + begin, 0, 4 * some);
            else
                nr_lanes_of_floats(lanes + begin, values + begin, some, s->scales[message % s->ahead][b]);
        }
    } else {
        nr_lanes_of_integers(lanes, (const int32_t *)s->call->from + at, count);
    }
}

static void read_data(struct stream *s, const uint32_t *lanes, uint64_t message) {
    size_t count = count_of(s, message), at = begin_of(s, message);
    double divisor = s->call->op == NR_AVERAGE ? s->assignment->workers : 1;
    if (s->assignment->floats) {
        memcpy((float *)s->call->to + at, lanes, 4 * count);
        if (divisor != 1) nr_divide((float *)s->call->to + at, count, divisor);
    } else if (s->call->kind == NR_KIND_BLOCK) {
        float *values = (float *)s->call->to + at;
        for (size_t b = 0; b * s->of_block < count; b++) {
            size_t begin = b * s->of_block, some = smaller(s->of_block, count - begin);
            nr_floats_of_lanes(values + begin, lanes + begin, some, s->scales[message % s->ahead][b], divisor);
        }
    } else {
        bool clear = nr_integers_of_lanes((int32_t *)s->call->to + at, lanes, count);
        if (!clear && s->call->kind == NR_KIND_INTEGER) s->call->overflow = true;
    }
}

static bool may_send(const struct stream *s) {
    const struct nr_link *link = s->link;
    return s->sent < s->total && link->sent < link->acknowledged + link->credit &&
           s->sent < s->received + (uint64_t)link->credit * NR_RECEIVES &&
           (s->ahead == 0 || s->sent < s->ahead + s->received);
}

static enum nr_error send_next(struct stream *s, char why[NR_WHY]) {
    uint64_t message = s->sent;
    uint32_t *buffer = nr_send_buffer(s->link), lanes = s->assignment->lanes;
    memset(buffer, 0, 4 * (size_t)lanes);
    nr_write_check(buffer, identity(s, message), s->assignment->floats);
    write_bytes(s, buffer, message + s->ahead);
    if (has_data(s, message)) write_data(s, buffer + lanes, message);
    s->sent++;
    return nr_send(s->link, s->index, packets_of(s, message), why);
}

static enum nr_outcome take_next(struct stream *s, uint32_t bytes, char why[NR_WHY]) {
    uint64_t message = s->received;
    const uint32_t *buffer = nr_receive_buffer(s->link);
    uint32_t expected = packets_of(s, message) * s->link->packet_bytes;
    enum nr_sum sum = bytes < s->link->packet_bytes
                          ? NR_DIFFERENT
                          : nr_read_check(buffer, identity(s, message), s->assignment->workers, s->assignment->floats);
    if (sum == NR_RAW) {
        snprintf(why, NR_WHY, "message %llu came as another worker sent it: the switches do not add up",
                 (unsigned long long)message);
        return NR_BROKEN;
    }
    if (sum == NR_DIFFERENT || bytes != expected) {
        snprintf(why, NR_WHY, "workers called with different arrays, or one skipped a call (message %llu of call %llu)",
                 (unsigned long long)message, (unsigned long long)s->call->number);
        return NR_OUT_OF_STEP;
    }
    if (has_data(s, message)) read_data(s, buffer + s->assignment->lanes, message);
    read_bytes(s, buffer, message + s->ahead);
    s->received++;
    s->link->received++;
    return NR_DONE;
}

/* ---- all trees ---- */

/* With its sums a worker has all that it needs. Whether the next one has them, too, is for the next call's credit, and for
 * nr_flush: its last acknowledgment may be lost, and who has left repeats none. */
static bool has_sums(const struct stream *s) { return s->received == s->total; }
static bool is_acknowledged(const struct stream *s) { return s->link->acknowledged == s->link->sent; }

static enum nr_outcome wait_for_any(struct nr_device *device, const struct nr_watch *watch, double until) {
    double left = until - nr_now();
    if (left <= 0) return NR_LATE;
    struct pollfd watched[2] = {{device->channel->fd, POLLIN, 0}, {watch->descriptor, POLLIN, 0}};
    int ready = poll(watched, 2, left > 1000 ? 1000000 : (int)ceil(1000 * left));
    if (ready > 0 && watched[0].revents) nr_take_event(device);
    return ready > 0 && watched[1].revents && watch->ends(watch->context) ? NR_NEWS : NR_DONE;
}

static enum nr_outcome turn(struct stream *streams, uint32_t trees, struct nr_device *device, bool *idle,
                            char why[NR_WHY]) {
    for (uint32_t i = 0; i < trees; i++)
        while (may_send(&streams[i]))
            if (send_next(&streams[i], why) != NR_OK) return NR_BROKEN;
    struct nr_done done[16];
    int count = nr_completions(device, done, 16, why);
    if (count < 0) return NR_BROKEN;
    *idle = count == 0;
    for (int i = 0; i < count; i++) {
        struct stream *s = &streams[done[i].tree];
        if (done[i].sort == NR_SENT) {
            s->link->acknowledged++;
            continue;
        }
        enum nr_outcome outcome = take_next(s, done[i].bytes, why);
        if (outcome != NR_DONE) return outcome;
    }
    return NR_DONE;
}

/* Until all `streams` are `done`. */
static enum nr_outcome course(struct stream *streams, uint32_t trees, bool (*done)(const struct stream *),
                              struct nr_device *device, const struct nr_watch *watch, double until, char why[NR_WHY]) {
    bool armed = false;
    for (;;) {
        bool idle = false;
        enum nr_outcome outcome = turn(streams, trees, device, &idle, why);
        if (outcome != NR_DONE) return outcome;
        const struct stream *open = NULL;
        for (uint32_t i = trees; i-- > 0;)
            if (!done(&streams[i])) open = &streams[i];
        if (open == NULL) return NR_DONE;
        if (!idle) continue;
        if (!armed) { /* what came before arming is seen by one more turn */
            if (nr_arm(device, why) != NR_OK) return NR_BROKEN;
            armed = true;
            continue;
        }
        armed = false;
        outcome = wait_for_any(device, watch, until);
        if (outcome == NR_LATE) {
            snprintf(why, NR_WHY, "tree %u: of %llu messages %llu are sent and %llu sums came, %llu are not acknowledged",
                     open->assignment->tree[open->index].tree, (unsigned long long)open->total,
                     (unsigned long long)open->sent, (unsigned long long)open->received,
                     (unsigned long long)(open->link->sent - open->link->acknowledged));
        }
        if (outcome != NR_DONE) return outcome;
    }
}

enum nr_outcome nr_call_run(struct nr_call *call, const struct nr_assignment *a, struct nr_device *device,
                            struct nr_link *links, const struct nr_watch *watch, double until, char why[NR_WHY]) {
    struct stream streams[NR_TREES];
    for (uint32_t i = 0; i < a->trees; i++) cut(&streams[i], call, a, links, i);
    return course(streams, a->trees, has_sums, device, watch, until, why);
}

enum nr_outcome nr_flush(const struct nr_assignment *a, struct nr_device *device, struct nr_link *links,
                         const struct nr_watch *watch, double until, char why[NR_WHY]) {
    struct stream streams[NR_TREES] = {0}; /* nothing to send */
    for (uint32_t i = 0; i < a->trees; i++) streams[i].link = &links[i], streams[i].assignment = a, streams[i].index = i;
    return course(streams, a->trees, is_acknowledged, device, watch, until, why);
}
