/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "../engine/numerics/quantize.h"
#include "calls.h"
#include "message_header.h"
#include "rows.h"

enum { MAX_BLOCKS = 16, SUM_BITS = 30 };

/* A tree's part of a call: `total` messages, of which `data` after the first `ahead` have data. `sent`, `received`: of this call.
 * Unacknowledged messages are counted by the connection; they may be of the previous call. */
struct stream {
    struct nr_connection *connection;
    const struct nr_assignment *assignment;
    struct nr_call *call;
    uint32_t index;
    size_t first, count, of_packet, of_message, of_block, blocks, first_row;
    uint64_t ahead, data, total, sent, received;
    int scale_bits[NR_MAX_CREDIT][MAX_BLOCKS]; /* of message m at m % ahead */
};

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static bool is_block(const struct nr_call *call) { return call->type == NR_CALL_BLOCK_FLOAT || call->type == NR_CALL_REPEAT; }

/* ---- division into messages ---- */

static void init_stream(struct stream *s, struct nr_call *call, const struct nr_assignment *a,
                        struct nr_connection *connections, uint32_t index) {
    struct nr_span part = nr_tree_span(call->elements, a, index);
    memset(s, 0, sizeof *s);
    s->connection = &connections[index];
    s->assignment = a;
    s->call = call;
    s->index = index;
    s->first = part.first;
    s->count = part.count;
    size_t packets = s->connection->packets - 1;
    if (call->type == NR_CALL_QUARTER) {
        packets = min_size(packets, a->lanes - NR_CHECK_LANES);
        s->first_row = nr_first_row(call->elements, a, index);
    }
    s->of_packet = call->type == NR_CALL_QUARTER ? nr_row_width(a) : a->lanes;
    s->of_message = packets * s->of_packet;
    s->blocks = nr_header_blocks(a->lanes, a->workers);
    if (s->blocks > MAX_BLOCKS) s->blocks = MAX_BLOCKS;
    if (s->blocks > packets) s->blocks = packets;
    if (s->blocks > 0) s->of_block = (packets + s->blocks - 1) / s->blocks * a->lanes;
    s->data = (s->count + s->of_message - 1) / s->of_message;
    s->ahead = is_block(call) && s->data > 0 ? s->connection->credit : 0;
    s->total = s->ahead + s->data + 1;
}

static bool has_data(const struct stream *s, uint64_t message) { return message >= s->ahead && message < s->ahead + s->data; }

/* Index of a message's first element in the array. */
static size_t first_element(const struct stream *s, uint64_t message) {
    return s->first + (size_t)(message - s->ahead) * s->of_message;
}

static size_t element_count(const struct stream *s, uint64_t message) {
    if (!has_data(s, message)) return 0;
    size_t left = s->first + s->count - first_element(s, message);
    return left < s->of_message ? left : s->of_message;
}

static uint32_t packet_count(const struct stream *s, uint64_t message) {
    return 1 + (uint32_t)((element_count(s, message) + s->of_packet - 1) / s->of_packet);
}

uint64_t nr_call_packets(const struct nr_call *call, const struct nr_assignment *a, const struct nr_connection *connections) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < a->trees; i++) {
        struct stream s;
        init_stream(&s, (struct nr_call *)(uintptr_t)call, a, (struct nr_connection *)(uintptr_t)connections, i);
        uint64_t packets = s.total + (s.count + s.of_packet - 1) / s.of_packet;
        if (packets > most) most = packets;
    }
    return most;
}

/* ---- messages ---- */

static uint64_t identity(const struct stream *s, uint64_t message) {
    uint64_t hash = nr_hash_mix(s->assignment->epoch, s->call->number);
    hash = nr_hash_mix(hash, message);
    hash = nr_hash_mix(hash, s->call->elements);
    hash = nr_hash_mix(hash, (uint64_t)s->call->type << 8 | (uint64_t)s->call->op);
    if (s->call->type == NR_CALL_QUARTER) hash = nr_hash_mix(hash, s->call->rows->fingerprint);
    return nr_hash_mix(hash, s->index);
}

static int headroom(size_t workers) {
    int bits = 0;
    while (((size_t)1 << bits) < workers) bits++;
    return bits;
}

static void divide(float *values, size_t count, double divisor) {
    for (size_t i = 0; i < count; i++) values[i] = (float)(values[i] / divisor);
}

static bool has_saturated(const int32_t *sums, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sums[i] == INT32_MAX || sums[i] == INT32_MIN) return true;
    return false;
}

static void write_bytes(struct stream *s, uint32_t *header, uint64_t of_message) {
    if (!is_block(s->call) || !has_data(s, of_message)) return;
    const float *values = (const float *)s->call->from + first_element(s, of_message);
    size_t count = element_count(s, of_message);
    for (size_t b = 0; b * s->of_block < count; b++) {
        size_t at = b * s->of_block;
        int byte = nf_exponent(values + at, (int64_t)min_size(s->of_block, count - at));
        nr_write_byte(header, b, s->assignment->workers, byte);
    }
}

static void read_bytes(struct stream *s, const uint32_t *header, uint64_t of_message) {
    if (!is_block(s->call) || !has_data(s, of_message)) return;
    size_t workers = s->assignment->workers, count = element_count(s, of_message);
    for (size_t b = 0; b * s->of_block < count; b++) {
        int byte = nr_read_byte(header, b, workers);
        if (byte == NF_NOT_FINITE) s->call->not_finite = true;
        s->scale_bits[of_message % s->ahead][b] = nf_shared_bits((uint8_t)byte, SUM_BITS, headroom(workers));
    }
}

static void write_data(struct stream *s, uint32_t *lanes, uint64_t message) {
    size_t count = element_count(s, message), at = first_element(s, message);
    size_t whole = (packet_count(s, message) - 1) * (size_t)s->assignment->lanes;
    memset(lanes + count, 0, 4 * (whole - count));
    if (s->call->from == NULL) {
        for (size_t i = 0; i < count; i++) lanes[i] = s->assignment->floats ? 1u << 31 : 0;
    } else if (s->assignment->floats) {
        memcpy(lanes, (const float *)s->call->from + at, 4 * count);
    } else if (is_block(s->call)) {
        const float *values = (const float *)s->call->from + at;
        for (size_t b = 0; b * s->of_block < count; b++) {
            size_t begin = b * s->of_block, some = min_size(s->of_block, count - begin);
            if (s->call->not_finite) /* the call has failed, but its messages are due */
                memset(lanes + begin, 0, 4 * some);
            else
                nf_quantize(lanes + begin, values + begin, s->scale_bits[message % s->ahead][b], (int64_t)some);
        }
    } else {
        nf_swap_lane_bytes(lanes, (const uint32_t *)s->call->from + at, (int64_t)count);
    }
}

static void read_data(struct stream *s, const uint32_t *lanes, uint64_t message) {
    size_t count = element_count(s, message), at = first_element(s, message);
    double divisor = s->call->op == NR_AVERAGE ? s->assignment->workers : 1;
    if (s->assignment->floats) {
        memcpy((float *)s->call->to + at, lanes, 4 * count);
        if (divisor != 1) divide((float *)s->call->to + at, count, divisor);
    } else if (is_block(s->call)) {
        float *values = (float *)s->call->to + at;
        for (size_t b = 0; b * s->of_block < count; b++) {
            size_t begin = b * s->of_block, some = min_size(s->of_block, count - begin);
            double scale = ldexp(1, -s->scale_bits[message % s->ahead][b]) / divisor;
            nf_dequantize(values + begin, lanes + begin, scale, (int64_t)some);
        }
    } else {
        int32_t *sums = (int32_t *)s->call->to + at;
        nf_swap_lane_bytes((uint32_t *)sums, lanes, (int64_t)count);
        if (has_saturated(sums, count) && s->call->type == NR_CALL_INTEGER) s->call->overflow = true;
    }
}

/* ---- rows of a gradient: the header has a check number of each ---- */

static void write_rows(struct stream *s, uint32_t *message_lanes, uint64_t message) {
    size_t count = element_count(s, message), first = first_element(s, message), lanes = s->assignment->lanes;
    size_t row = s->first_row + (first - s->first) / s->of_packet;
    for (size_t k = 0; k * s->of_packet < count; k++) {
        size_t at = k * s->of_packet;
        int32_t check = nr_write_row(message_lanes + (1 + k) * lanes, (const float *)s->call->from + first + at,
                                     min_size(s->of_packet, count - at), row + k, s->call->rows, s->assignment);
        message_lanes[NR_CHECK_LANES + k] = htonl((uint32_t)check);
    }
}

static void read_rows(struct stream *s, const uint32_t *message_lanes, uint64_t message) {
    size_t count = element_count(s, message), first = first_element(s, message), lanes = s->assignment->lanes;
    size_t row = s->first_row + (first - s->first) / s->of_packet;
    double divisor = s->call->op == NR_AVERAGE ? s->assignment->workers : 1;
    for (size_t k = 0; k * s->of_packet < count; k++) {
        size_t at = k * s->of_packet;
        nr_read_row((float *)s->call->to + first + at, min_size(s->of_packet, count - at), message_lanes + (1 + k) * lanes,
                    (int32_t)ntohl(message_lanes[NR_CHECK_LANES + k]), divisor, row + k, s->call->rows, s->assignment);
    }
}

static bool may_send(const struct stream *s) {
    const struct nr_connection *connection = s->connection;
    return s->sent < s->total && connection->sent < connection->acknowledged + connection->credit &&
           s->sent < s->received + (uint64_t)connection->credit * NR_RECEIVES_PER_SEND &&
           (s->ahead == 0 || s->sent < s->ahead + s->received);
}

static enum nr_error send_next(struct stream *s, char reason[NR_REASON_BYTES]) {
    uint64_t message = s->sent;
    uint32_t *buffer = nr_send_buffer(s->connection), lanes = s->assignment->lanes;
    memset(buffer, 0, 4 * (size_t)lanes);
    nr_write_check(buffer, identity(s, message), s->assignment->floats);
    write_bytes(s, buffer, message + s->ahead);
    if (s->call->type == NR_CALL_QUARTER)
        write_rows(s, buffer, message);
    else if (has_data(s, message))
        write_data(s, buffer + lanes, message);
    s->sent++;
    return nr_send(s->connection, s->index, packet_count(s, message), reason);
}

static enum nr_outcome receive_next(struct stream *s, uint32_t bytes, char reason[NR_REASON_BYTES]) {
    uint64_t message = s->received;
    const uint32_t *buffer = nr_receive_buffer(s->connection);
    uint32_t expected = packet_count(s, message) * s->connection->packet_bytes;
    enum nr_check_result sum = bytes < s->connection->packet_bytes
                                   ? NR_DIFFERENT
                                   : nr_read_check(buffer, identity(s, message), s->assignment->workers, s->assignment->floats);
    if (sum == NR_NOT_SUMMED) {
        snprintf(reason, NR_REASON_BYTES, "message %llu is the predecessor's own: the switches do not add up",
                 (unsigned long long)message);
        return NR_CONNECTION_LOST;
    }
    if (sum == NR_DIFFERENT || bytes != expected) {
        snprintf(reason, NR_REASON_BYTES,
                 "workers called with different arrays, or one skipped a call (message %llu of call %llu)",
                 (unsigned long long)message, (unsigned long long)s->call->number);
        return NR_CALL_DESYNC;
    }
    if (s->call->type == NR_CALL_QUARTER)
        read_rows(s, buffer, message);
    else if (has_data(s, message))
        read_data(s, buffer + s->assignment->lanes, message);
    read_bytes(s, buffer, message + s->ahead);
    s->received++;
    nr_calls_receive(s->call->log);
    s->connection->received++;
    return NR_DONE;
}

/* ---- all trees ---- */

/* A call ends with its sums. The successor's acknowledgments matter for the next call's credit and for nr_flush: the last one may
 * be lost, and a worker that has left repeats none. */
static bool has_sums(const struct stream *s) { return s->received == s->total; }
static bool is_acknowledged(const struct stream *s) { return s->connection->acknowledged == s->connection->sent; }

static enum nr_outcome wait_for_any(struct nr_device *device, const struct nr_watch *watch, double until) {
    double left = until - nr_now();
    if (left <= 0) return NR_DEADLINE;
    struct pollfd watched[2] = {{device->channel->fd, POLLIN, 0}, {watch->descriptor, POLLIN, 0}};
    int ready = poll(watched, 2, left > 1000 ? 1000000 : (int)ceil(1000 * left));
    if (ready > 0 && watched[0].revents) nr_consume_event(device);
    return ready > 0 && watched[1].revents && watch->is_canceled(watch->context) ? NR_EPOCH_CHANGED : NR_DONE;
}

static enum nr_outcome process_streams(struct stream *streams, uint32_t trees, struct nr_device *device, bool *idle,
                                       char reason[NR_REASON_BYTES]) {
    for (uint32_t i = 0; i < trees; i++)
        while (may_send(&streams[i]))
            if (send_next(&streams[i], reason) != NR_OK) return NR_CONNECTION_LOST;
    struct nr_completion done[16];
    int count = nr_poll_completions(device, done, 16, reason);
    if (count < 0) return NR_CONNECTION_LOST;
    *idle = count == 0;
    for (int i = 0; i < count; i++) {
        struct stream *s = &streams[done[i].tree];
        if (done[i].type == NR_SENT) {
            s->connection->acknowledged++;
            continue;
        }
        enum nr_outcome outcome = receive_next(s, done[i].bytes, reason);
        if (outcome != NR_DONE) return outcome;
    }
    return NR_DONE;
}

/* Runs until all `streams` are `done`. */
static enum nr_outcome run_streams(struct stream *streams, uint32_t trees, bool (*done)(const struct stream *),
                                   struct nr_device *device, const struct nr_watch *watch, double until,
                                   char reason[NR_REASON_BYTES]) {
    bool armed = false;
    for (;;) {
        bool idle = false;
        enum nr_outcome outcome = process_streams(streams, trees, device, &idle, reason);
        if (outcome != NR_DONE) return outcome;
        const struct stream *open = NULL;
        for (uint32_t i = trees; i-- > 0;)
            if (!done(&streams[i])) open = &streams[i];
        if (open == NULL) return NR_DONE;
        if (!idle) continue;
        if (!armed) { /* completions from before are polled once more */
            if (nr_arm_completions(device, reason) != NR_OK) return NR_CONNECTION_LOST;
            armed = true;
            continue;
        }
        armed = false;
        outcome = wait_for_any(device, watch, until);
        if (outcome == NR_DEADLINE) {
            snprintf(reason, NR_REASON_BYTES,
                     "tree %u: of %llu messages %llu are sent and %llu sums received, %llu are unacknowledged",
                     open->assignment->tree[open->index].tree, (unsigned long long)open->total, (unsigned long long)open->sent,
                     (unsigned long long)open->received,
                     (unsigned long long)(open->connection->sent - open->connection->acknowledged));
        }
        if (outcome != NR_DONE) return outcome;
    }
}

enum nr_outcome nr_call_run(struct nr_call *call, const struct nr_assignment *a, struct nr_device *device,
                            struct nr_connection *connections, const struct nr_watch *watch, double until,
                            char reason[NR_REASON_BYTES]) {
    struct stream streams[NR_TREES];
    uint64_t messages = 0;
    for (uint32_t i = 0; i < a->trees; i++) {
        init_stream(&streams[i], call, a, connections, i);
        messages += streams[i].total;
    }
    nr_calls_attempt(call->log, call->number, a, messages);
    return run_streams(streams, a->trees, has_sums, device, watch, until, reason);
}

enum nr_outcome nr_flush(const struct nr_assignment *a, struct nr_device *device, struct nr_connection *connections,
                         const struct nr_watch *watch, double until, char reason[NR_REASON_BYTES]) {
    struct stream streams[NR_TREES] = {0}; /* nothing to send */
    for (uint32_t i = 0; i < a->trees; i++)
        streams[i].connection = &connections[i], streams[i].assignment = a, streams[i].index = i;
    return run_streams(streams, a->trees, is_acknowledged, device, watch, until, reason);
}
