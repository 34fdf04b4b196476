/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <arpa/inet.h>
#include <string.h>

#include "../engine/numerics/quantize.h"
#include "../engine/numerics/rotate.h"

enum { FIELDS = 4 };

/* Far above all check numbers of a row, and with 64 workers below the limit of a lane. */
enum { REFUSED = 1 << 24 };

/* ---- division into rows ---- */

struct nr_span nr_tree_span(size_t elements, const struct nr_assignment *a, uint32_t index) {
    double before = 0;
    for (uint32_t i = 0; i < index; i++) before += a->tree[i].share;
    size_t first = (size_t)(before * (double)elements);
    size_t end = index + 1 == a->trees ? elements : (size_t)((before + a->tree[index].share) * (double)elements);
    return (struct nr_span){first, end > first ? end - first : 0};
}

size_t nr_row_width(const struct nr_assignment *a) { return (size_t)FIELDS * a->lanes; }

size_t nr_first_row(size_t elements, const struct nr_assignment *a, uint32_t tree_index) {
    size_t rows = 0, width = nr_row_width(a);
    for (uint32_t i = 0; i < tree_index; i++) rows += (nr_tree_span(elements, a, i).count + width - 1) / width;
    return rows;
}

size_t nr_row_count(size_t elements, const struct nr_assignment *a) { return nr_first_row(elements, a, a->trees); }

struct nr_span nr_row_span(size_t elements, const struct nr_assignment *a, size_t row) {
    size_t width = nr_row_width(a);
    uint32_t tree = 0;
    while (tree + 1 < a->trees && nr_first_row(elements, a, tree + 1) <= row) tree++;
    struct nr_span part = nr_tree_span(elements, a, tree);
    size_t skipped = (row - nr_first_row(elements, a, tree)) * width, left = part.count - skipped;
    return (struct nr_span){part.first + skipped, left < width ? left : width};
}

/* ---- a row ---- */

static struct nf_rotation rotation_of(size_t row, const struct nr_rows *rows, const struct nr_assignment *a) {
    return (struct nf_rotation){rows->fingerprint, (int64_t)row, a->rank, a->workers};
}

/* The codes of all fields with weights from 1 to 3 by their lane: a field that left its eight bits and a lane that was saturated
 * change it, for they change codes of one lane alone. */
static int32_t check_of(const uint32_t *lanes, uint32_t count) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t rest = (int32_t)ntohl(lanes[i]);
        int32_t codes = 0;
        for (int field = 1; field < FIELDS; field++) {
            int8_t low = (int8_t)rest;
            codes += low;
            rest = (rest - low) / 256;
        }
        sum += (int32_t)(1 + i % 3) * (codes + (int32_t)rest);
    }
    return sum;
}

int32_t nr_write_row(uint32_t *lanes, const float *from, size_t count, size_t row, const struct nr_rows *rows,
                     const struct nr_assignment *a) {
    float values[NF_ROTATED_MAX] = {0};
    int64_t width = (int64_t)nr_row_width(a);
    memcpy(values, from, 4 * count);
    uint8_t exponent = nf_exponent(values, width), range = rows->predicted[row];
    bool has_range = range != NF_UNKNOWN_RANGE;
    struct nf_rotation rotation = rotation_of(row, rows, a);
    if (exponent != NF_NOT_FINITE && has_range && nf_rotate_pack(lanes, values, width, exponent, range, &rotation))
        return check_of(lanes, a->lanes);
    memset(lanes, 0, 4 * (size_t)a->lanes);
    return exponent || has_range ? REFUSED : 0;
}

void nr_read_row(float *to, size_t count, const uint32_t *lanes, int32_t check, double divisor, size_t row,
                 struct nr_rows *rows, const struct nr_assignment *a) {
    float values[NF_ROTATED_MAX];
    struct nf_rotation rotation = rotation_of(row, rows, a);
    uint8_t range = rows->predicted[row];
    if (range == NF_UNKNOWN_RANGE) { /* 0 is the check number of a row of zeros at all workers */
        memset(to, 0, 4 * count);
        rows->observed[row] = check ? NF_UNKNOWN_RANGE : NF_BELOW_RANGES;
        return;
    }
    uint8_t observed = nf_rotate_unpack(values, lanes, (int64_t)nr_row_width(a), range, divisor, &rotation);
    bool fits = check == check_of(lanes, a->lanes) && nf_fits_range(observed, range);
    rows->observed[row] = fits ? observed : NF_UNKNOWN_RANGE;
    memcpy(to, values, 4 * count);
}
