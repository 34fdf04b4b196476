/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What spans.c and turns.c share. */

#ifndef NETFOLD_SPANS_H
#define NETFOLD_SPANS_H

#include "channels.h"

/* Rows of c->lanes elements; `first` is the row of chunk `base`. `output` has `elements`: its last row may be cut. */
struct span {
    const uint32_t *input;
    uint32_t *output;
    int64_t elements;
    const uint8_t *own;   /* by row: this worker's exponent, */
    uint8_t *agreed;      /* and the largest of all workers' */
    uint8_t *overflowed;  /* by row: integers whose sum did not fit, and floats that are not all finite */
    int64_t first, last, base;
    int64_t sum_bits;     /* magnitude of sums, as a power of two, over the number of workers; -1: integers */
    int64_t divisor;      /* of sums of floats */
};

struct emitted {
    int64_t count, held_back, highest;
};

/* struct iovec */
struct piece {
    uint64_t base, length;
};

void nf_take(const struct channels *c, const struct span *s, const struct batch *batch, struct matched *out);

void nf_emit(const struct channels *c, const struct span *s, int64_t end, int64_t highest, int64_t room, int64_t allowance,
             double now, struct piece *pieces, int64_t *order, struct emitted *out);

#endif
