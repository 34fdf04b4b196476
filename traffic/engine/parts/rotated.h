/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Data chunks of the scheme quarter, docs/reference/protocol.md, section 6: all workers know the range of a row; the header
 * carries the sender's exponent byte, by which a row is re-encoded that does not fit. */

#ifndef NETFOLD_ROTATED_H
#define NETFOLD_ROTATED_H

#include "parts.h"

void rotated_fill(const struct nf_call *c, int64_t row, struct header *h);
void rotated_take(struct nf_call *c, int64_t row, struct header *h);

#endif
