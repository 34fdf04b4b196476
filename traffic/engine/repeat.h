/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of a call that go again, docs/protocol.md, section 6: where the sum did not fit its scale, or is of numbers of which
 * some are NaN or infinite, whose kinds go first. A row of int32 comes back in two halves. */

#ifndef NETFOLD_REPEAT_H
#define NETFOLD_REPEAT_H

#include "call.h"

/* Nothing is repeated any more; the trees' runs stay. */
void repeat_forget(struct nf_call *c);

/* Rows are to go again, the first time or, with a quorum, once more. */
int repeat_is_due(const struct nf_call *c);

/* How many chunks the kinds and the rows of a tree take. -1: no memory. */
int64_t repeat_plan_kinds(struct nf_call *c, struct again *a);
int64_t repeat_plan(struct nf_call *c, struct again *a);

/* What a chunk carries, and what its result is taken for. repeat_take gives a status: NF_PENDING if all is well. */
void repeat_fill_kinds(const struct nf_call *c, const struct again *a, int64_t chunk, struct header *h);
void repeat_fill(const struct nf_call *c, const struct again *a, int64_t chunk, struct header *h);
void repeat_take_kinds(struct nf_call *c, const struct again *a, int64_t chunk, struct header *h);
int64_t repeat_take(struct nf_call *c, const struct again *a, int64_t chunk, struct header *h);

/* After the last one: joins the halves of int32. NF_SUM_OVERFLOW if a sum does not fit, else NF_DONE. */
int64_t repeat_join(struct nf_call *c);

#endif
