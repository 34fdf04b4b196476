/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What of a tree is lost, docs/protocol.md, section 5.2: only the oldest chunk under way is asked about. */

#ifndef NETFOLD_LOSSES_H
#define NETFOLD_LOSSES_H

#include "tree.h"

/* What time says by `now`: whether the oldest chunk is to be asked for, or the window to shrink. */
void losses_look(struct tree *t, double now);

/* Whether a chunk that went later than the oldest under way, by more than packets change places, is back. */
int losses_overtaken(const struct tree *t);

/* Whether the oldest chunk is to go again. */
int losses_lacking(const struct tree *t);

/* When silence will have been too long, if nothing comes. Something is under way. */
double losses_next(const struct tree *t);

#endif
