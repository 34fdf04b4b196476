/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Each segment of the session has an owner, a call or the resume exchange. */

#ifndef NETFOLD_SEGMENTS_H
#define NETFOLD_SEGMENTS_H

#include "state.h"

/* Appends a copy of the segment to a tree. Returns NF_PENDING, NF_NO_MEMORY, or NF_EXHAUSTED if the epoch has too few places
 * left. */
enum nf_status schedule_segment(struct tree *t, const struct segment *of);

/* Returns whether a segment of the owner lacks results. */
int has_segment(const struct nf_core *core, const void *owner);

#endif
