/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a gradient of the scheme quarter (docs/reference/roce.md, section 3): a packet is a row of four elements to a lane. RoCE has
 * no flag of saturated lanes, so a message's header has a check number of each row: numbers that are added up as the row's codes
 * are. */
#ifndef NETFOLD_ROCE_ROWS_H
#define NETFOLD_ROCE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"

/* Elements of an array, `count` from `first` on. */
struct nr_span {
    size_t first, count;
};

/* A tree's part of an array. */
struct nr_span nr_tree_span(size_t elements, const struct nr_assignment *a, uint32_t index);

/* Rows of an array: those of each tree's part, tree after tree. */
size_t nr_row_width(const struct nr_assignment *a);
size_t nr_row_count(size_t elements, const struct nr_assignment *a);
size_t nr_first_row(size_t elements, const struct nr_assignment *a, uint32_t tree_index);
struct nr_span nr_row_span(size_t elements, const struct nr_assignment *a, size_t row);

/* `predicted`: the range byte of each row; `observed`: that of its sums, or NF_UNKNOWN_RANGE: it has to be sent again. */
struct nr_rows {
    size_t count;
    uint64_t fingerprint; /* of the call and its ranges */
    uint8_t *predicted, *observed;
};

/* Writes the lanes of a row of `count` elements, and returns its check number. */
int32_t nr_write_row(uint32_t *lanes, const float *from, size_t count, size_t row, const struct nr_rows *rows,
                     const struct nr_assignment *a);
/* Reads the sums of a row over `divisor`; notes `observed`. */
void nr_read_row(float *to, size_t count, const uint32_t *lanes, int32_t check, double divisor, size_t row,
                 struct nr_rows *rows, const struct nr_assignment *a);

#endif
