/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A node's slots in one tree: the state machine of docs/protocol.md, section 3. */

#ifndef NETFOLD_SLOTS_H
#define NETFOLD_SLOTS_H

#include <stdint.h>

enum np_verdict {
    NP_ABSORBED = 1,
    NP_RESULT_SENT = 2,
    NP_RESULT_REPEATED = 3,
    NP_SUM_SENT = 4,
    NP_SUM_REPEATED = 5,
    NP_RELAYED = 7,
    NP_BAD_SLOT = 18,
    NP_STALE_CHUNK = 19,
    NP_DUPLICATE = 20,
    NP_VERDICTS = 32
};

enum { NP_OVERFLOW = 0x80, NP_CONGESTION = 0x40, NP_FLAGS = NP_OVERFLOW | NP_CONGESTION };

struct np_pool {
    int64_t slots, lanes, children, stride;
    int root;
    uint8_t *memory;
    int64_t open, most_open; /* slots that are claimed and not complete, */
    int64_t looked;          /* until when they are in `area`, */
    double area;             /* slots times time, in the owner's unit */
    int64_t verdicts[NP_VERDICTS];
};

/* What a sum that leaves says. `lanes` lies in the slot. */
struct np_sum {
    const int32_t *lanes;
    uint8_t flags, exponent;
};

/* -1: no memory. */
int np_pool_start(struct np_pool *p, int64_t slots, int64_t lanes, int64_t children, int root);
void np_pool_free(struct np_pool *p);

/* A GRADIENT of the child whose bit it is. `sum` is set if the verdict lets one leave. */
enum np_verdict np_pool_gradient(struct np_pool *p, uint32_t tag, int64_t slot, int64_t bit, uint8_t flags,
                                 uint8_t exponent, const int32_t *lanes, struct np_sum *sum);

/* The same for many, for tests that compare it with others: per packet what np_pool_gradient takes, the verdict, and what
 * leaves (0 where nothing does). Shapes (count,) and (count, lanes). -1: no memory. */
int np_pool_trace(int64_t slots, int64_t lanes, int64_t children, int root, int64_t count, const uint32_t *tags,
                  const int64_t *at, const int64_t *bits, const uint8_t *flags, const uint8_t *exponents,
                  const int32_t *values, uint8_t *verdicts, uint8_t *out_flags, uint8_t *out_exponents, int32_t *sums);

#endif
