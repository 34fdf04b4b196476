/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the scheme quarter: ranges of rows, predicted by the call before, and the call that repeats rows which did not fit. */
#ifndef NETFOLD_ROCE_GRADIENT_H
#define NETFOLD_ROCE_GRADIENT_H

#include "call.h"
#include "rows.h"

/* Ranges of the last gradient of each number of elements, in an epoch. All workers have the same. */
struct nr_ranges {
    struct nr_gradient_size *sizes;
    size_t count;
};

void nr_forget_ranges(struct nr_ranges *known);
/* Makes a call of block one of quarter, with `rows`, if the ranges are known and it takes at most `packets`. False: no memory. */
bool nr_choose_quarter(const struct nr_ranges *known, struct nr_call *call, const struct nr_assignment *a,
                       const struct nr_connection *connections, uint64_t packets);
void nr_free_rows(struct nr_call *call);
/* Ranges of a finished call's sums. */
void nr_learn_ranges(struct nr_ranges *known, const struct nr_call *call, const struct nr_assignment *a);

/* Packets of a call, with all rows of a gradient sent again. */
uint64_t nr_max_packets(const struct nr_call *call, const struct nr_assignment *a, const struct nr_connection *connections);
/* The call that repeats the rows that did not fit, with arrays of its own. False: no memory. */
bool nr_begin_repeat(struct nr_call *repeat, const struct nr_call *call, const struct nr_assignment *a);
/* Takes over the sums if `is_done`, and frees the arrays. */
void nr_end_repeat(struct nr_call *repeat, struct nr_call *call, const struct nr_assignment *a, bool is_done);

#endif
