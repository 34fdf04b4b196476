/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Targeted packets, docs/reference/protocol.md, section 2.1: `lanes` of the header says which workers want lanes. */

#ifndef NETFOLD_TARGET_H
#define NETFOLD_TARGET_H

#include "header.h"

/* In network byte order. */
static inline uint16_t target_field(int all_but, int64_t owner) {
    return __builtin_bswap16((uint16_t)(TARGETED | (all_but ? TARGET_ALL_BUT : 0) | (int)owner));
}

static inline int is_targeted(const struct header *h) { return (__builtin_bswap16(h->lanes) & TARGETED) != 0; }

/* Returns whether the packet is short unless it is cut. */
static inline int is_short(const struct header *h) { return is_targeted(h) && !(h->flags & FLAG_DATA); }

/* Returns the rank of a targeted packet's owner, or TARGET_NONE. */
static inline int64_t target_owner(const struct header *h) { return __builtin_bswap16(h->lanes) & TARGET_NONE; }

/* Returns whether the worker of a rank wants lanes. */
static inline int target_wants(const struct header *h, int64_t rank) {
    return !is_targeted(h) || (target_owner(h) == rank) != ((__builtin_bswap16(h->lanes) & TARGET_ALL_BUT) != 0);
}

#endif
