/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Re-encoding of rows whose sums did not fit their scale, or that have special values, docs/reference/protocol.md, section 6. A row of
 * int32 is re-encoded as two halves. */

#ifndef NETFOLD_REENCODE_H
#define NETFOLD_REENCODE_H

#include "parts.h"

/* Returns whether rows have to be re-encoded: for the first time or, with a quorum, once more. */
int reencode_is_due(const struct nf_call *c);

/* Joins the halves of int32 after the last row. Returns NF_SUM_OVERFLOW if a sum does not fit, else NF_DONE. */
int64_t reencode_finish(struct nf_call *c);

#endif
