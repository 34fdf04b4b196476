/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "gradient.h"

#include <stdlib.h>
#include <string.h>

#include "../engine/numerics/rotate.h"
#include "message_header.h"

enum { MAX_SIZES = 64 };

struct nr_gradient_size {
    size_t elements, rows;
    uint8_t *ranges;
    struct nr_gradient_size *next;
};

/* ---- ranges ---- */

void nr_forget_ranges(struct nr_ranges *known) {
    for (struct nr_gradient_size *size = known->sizes, *next; size != NULL; size = next) {
        next = size->next;
        free(size->ranges);
        free(size);
    }
    *known = (struct nr_ranges){0};
}

static struct nr_gradient_size *size_of(const struct nr_ranges *known, size_t elements) {
    struct nr_gradient_size *size = known->sizes;
    while (size != NULL && size->elements != elements) size = size->next;
    return size;
}

static bool predict_rows(const struct nr_gradient_size *size, struct nr_call *call, const struct nr_assignment *a) {
    struct nr_rows *rows = malloc(sizeof *rows + 2 * size->rows);
    if (rows == NULL) return false;
    uint8_t *bytes = (uint8_t *)(rows + 1);
    uint64_t hash = nr_hash_mix(nr_hash_mix(a->epoch, call->number), call->elements);
    *rows = (struct nr_rows){size->rows, 0, bytes, bytes + size->rows};
    for (size_t row = 0; row < size->rows; row++) {
        rows->predicted[row] = nf_predicted_range(size->ranges[row]);
        rows->observed[row] = NF_UNKNOWN_RANGE;
        hash = nr_hash_mix(hash, rows->predicted[row]);
    }
    rows->fingerprint = hash;
    call->rows = rows;
    return true;
}

static struct nr_call repeat_of(const struct nr_call *call, const struct nr_assignment *a, size_t rows) {
    size_t elements = rows * nr_row_width(a);
    return (struct nr_call){.type = NR_CALL_REPEAT, .op = call->op, .number = call->number, .elements = elements};
}

uint64_t nr_max_packets(const struct nr_call *call, const struct nr_assignment *a, const struct nr_connection *connections) {
    uint64_t packets = nr_call_packets(call, a, connections);
    if (call->type != NR_CALL_QUARTER) return packets;
    struct nr_call repeat = repeat_of(call, a, call->rows->count);
    return packets + nr_call_packets(&repeat, a, connections);
}

bool nr_choose_quarter(const struct nr_ranges *known, struct nr_call *call, const struct nr_assignment *a,
                       const struct nr_connection *connections, uint64_t packets) {
    const struct nr_gradient_size *size = size_of(known, call->elements);
    if (call->type != NR_CALL_BLOCK_FLOAT || !a->quarter || size == NULL || size->rows == 0) return true;
    if (!predict_rows(size, call, a)) return false;
    call->type = NR_CALL_QUARTER;
    if (nr_max_packets(call, a, connections) > packets) {
        call->type = NR_CALL_BLOCK_FLOAT;
        nr_free_rows(call);
    }
    return true;
}

void nr_free_rows(struct nr_call *call) {
    free(call->rows);
    call->rows = NULL;
}

/* Range byte of the sums of a row that was not rotated. */
static uint8_t range_of(const struct nr_call *call, const struct nr_assignment *a, size_t row) {
    struct nr_span span = nr_row_span(call->elements, a, row);
    const float *values = (const float *)call->to + span.first;
    double divisor = call->op == NR_AVERAGE ? a->workers : 1, energy = 0;
    for (size_t i = 0; i < span.count; i++) energy += (double)values[i] * (double)values[i];
    return nf_range_of(energy * (divisor * divisor) / (double)nr_row_width(a));
}

void nr_learn_ranges(struct nr_ranges *known, const struct nr_call *call, const struct nr_assignment *a) {
    size_t count = nr_row_count(call->elements, a);
    struct nr_gradient_size *size = size_of(known, call->elements);
    if (call->not_finite || (size == NULL && known->count == MAX_SIZES)) return;
    if (size == NULL) {
        size = calloc(1, sizeof *size);
        if (size == NULL) return; /* this worker's next call then differs from the others', which is a mismatch */
        size->ranges = malloc(count + 1);
        if (size->ranges == NULL) {
            free(size);
            return;
        }
        size->elements = call->elements, size->rows = count, size->next = known->sizes;
        known->sizes = size;
        known->count++;
    }
    for (size_t row = 0; row < count; row++) {
        uint8_t observed = call->rows != NULL ? call->rows->observed[row] : NF_UNKNOWN_RANGE;
        if (observed == NF_UNKNOWN_RANGE) observed = range_of(call, a, row);
        size->ranges[row] = observed;
    }
}

/* ---- rows that are sent again ---- */

static size_t refused_count(const struct nr_rows *rows) {
    size_t count = 0;
    for (size_t row = 0; row < rows->count; row++) count += rows->observed[row] == NF_UNKNOWN_RANGE;
    return count;
}

bool nr_begin_repeat(struct nr_call *repeat, const struct nr_call *call, const struct nr_assignment *a) {
    size_t width = nr_row_width(a), count = refused_count(call->rows), at = 0;
    *repeat = repeat_of(call, a, count);
    if (count == 0) return true;
    float *from = calloc(2 * count * width, sizeof *from);
    if (from == NULL) return false;
    repeat->from = from;
    repeat->to = from + count * width;
    for (size_t row = 0; row < call->rows->count; row++) {
        if (call->rows->observed[row] != NF_UNKNOWN_RANGE) continue;
        struct nr_span span = nr_row_span(call->elements, a, row);
        memcpy(from + at, (const float *)call->from + span.first, 4 * span.count);
        at += width;
    }
    return true;
}

void nr_end_repeat(struct nr_call *repeat, struct nr_call *call, const struct nr_assignment *a, bool is_done) {
    const float *sums = repeat->to;
    for (size_t row = 0; is_done && sums != NULL && row < call->rows->count; row++) {
        if (call->rows->observed[row] != NF_UNKNOWN_RANGE) continue;
        struct nr_span span = nr_row_span(call->elements, a, row);
        memcpy((float *)call->to + span.first, sums, 4 * span.count);
        sums += nr_row_width(a);
    }
    call->not_finite = call->not_finite || repeat->not_finite;
    free((void *)(uintptr_t)repeat->from);
}
