/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Sealing in a job with a quorum, docs/reference/protocol.md, section 3.7: chunks that waited long enough for all contributions
 * request that their sums go without the missing ones. */

#ifndef NETFOLD_SEAL_H
#define NETFOLD_SEAL_H

#include "tree_state.h"

/* Returns how long a chunk of the segment waits for all contributions; 0: its first transmission requests sealing; NF_UNKNOWN:
 * it waits until all are in. */
double seal_timeout(const struct tree *t, const struct segment *s);

/* Retransmits the chunks that timed out with a request; this is no loss. Returns the number of packets. */
int64_t send_seal_requests(struct tree *t, struct nf_out *out, int64_t capacity, double now);

/* Notes how many contributions a result of the segment has, and whether this worker's was late. */
void update_contributor_count(struct tree *t, const struct segment *s, const struct header *h);

/* Accepts a result that arrived before this worker sent its contribution, which then need not be sent. Returns its segment, or
 * NULL if there is none. */
struct segment *accept_early_result(struct stream *r, int64_t place);

#endif
