/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Contributors of sums in a job with a quorum. */

#ifndef NETFOLD_CONTRIBUTORS_H
#define NETFOLD_CONTRIBUTORS_H

#include "../call/call.h"

/* A sum of data has `count` contributions. Averages are over these. */
static inline void note_contributors(struct nf_call *c, int64_t count) {
    struct nf_outcome *o = &c->outcome;
    if (c->request.op == NF_AVERAGE && count) c->rows.codec.divisor = count;
    if (!o->sum_count || count < o->min_contributors) o->min_contributors = count;
    if (count > o->max_contributors) o->max_contributors = count;
    o->sum_count++;
    o->contributions += count;
}

#endif
