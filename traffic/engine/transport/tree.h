/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The transport of one tree in one epoch: which chunk is sent when, and retransmitted, docs/reference/protocol.md, sections 5.1
 * and 5.2. */

#ifndef NETFOLD_TREE_H
#define NETFOLD_TREE_H

#include "tree_state.h"

/* Returns 0, or -1 if there is no memory. */
int tree_init(struct tree *t, const struct nf_assignment *a, int64_t index, double now);
void tree_free(struct tree *t);

/* Appends a segment to its stream. Returns 0 if the epoch has too few places left. The tree owns it until it is complete. */
int tree_append(struct tree *t, struct segment *s);

/* Makes the held segments of a part of an owner sendable. */
void tree_release(struct tree *t, const void *owner, const struct part_ops *ops);

/* Returns the segment that a packet of `length` bytes is an awaited result of, or NULL if there is none. `chunk`: its index in
 * the segment. A complete segment (remaining == 0) is no longer the tree's. */
struct segment *tree_on_result(struct tree *t, const struct header *h, int64_t length, int marked, double now, int64_t *chunk);

/* Updates RTT and window by the results since the last call. */
void tree_update_window(struct tree *t, double now);

/* Takes the packets to send now, at most `capacity`; returns their number. */
int64_t tree_send(struct tree *t, struct nf_out *out, int64_t capacity, double now);

/* Returns when tree_send has something to do if nothing is received; NF_UNKNOWN: never. */
double tree_next_deadline(const struct tree *t, double now);

/* Returns the seconds in which a quarter of the chunks in flight can return at the paced rate, those of gathers beside others; 0:
 * no pacing, or few are in flight. */
double tree_coalescing_delay(const struct tree *t);

/* Returns 1 + the slot of the chunk that has been in flight for longest; 0: none is. */
int64_t tree_open_slot(const struct tree *t);

#endif
