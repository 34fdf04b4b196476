/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The slots of one node of a tree, and the state machine that handles a GRADIENT there, docs/reference/protocol.md, section 3.
 * It has no I/O. The root of a parameter server runs it, and so do the nodes of the packet simulator. */

#ifndef NETFOLD_SLOT_POOL_H
#define NETFOLD_SLOT_POOL_H

#include <stdint.h>

#include "../wire/export.h"
#include "../wire/header.h"

/* A ROOT makes results of complete sums, an INNER_NODE partial sums. */
enum nf_role { NF_ROOT, NF_INNER_NODE };

/* The state of a slot in a job with a quorum. */
struct nf_slot_seal {
    uint8_t count; /* contributions */
    uint8_t is_requested, is_sealed;
};

struct nf_slot_pool {
    enum nf_role role;
    int64_t slots, lanes, children;
    int64_t words; /* of the bitmap of a slot */
    uint32_t *tags;
    uint64_t *bitmaps; /* a bit for each child whose contribution is in */
    uint8_t *flags, *exponents;
    int32_t *sums; /* in host order */
    int64_t min_contributions; /* that suffice, in a job with a quorum (section 3.7); else 0 */
    int64_t direct_children; /* the first ones: the node's own; the others are below inner nodes */
    struct nf_slot_seal *seals;
};

/* Returns 0, or -1 if there is no memory. */
NF_API int nf_slot_pool_init(struct nf_slot_pool *p, enum nf_role role, int64_t slots, int64_t lanes, int64_t children);
NF_API void nf_slot_pool_free(struct nf_slot_pool *p);

/* Allows sums to be sealed with `min_contributions`. Returns 0, or -1 if there is no memory. */
NF_API int nf_slot_pool_set_quorum(struct nf_slot_pool *p, int64_t direct_children, int64_t min_contributions);

/* Adds a contribution of the child with this bit, which has lanes unless it is short. `marked`: with an ECN mark. After NF_RESULT_*, NF_SUM_*, NF_LATE and
 * NF_SLOT_REUSED `result` is the packet to send (it may be the memory of `h`); in a partial sum the caller sets the child. */
NF_API enum nf_verdict nf_slot_pool_accumulate(struct nf_slot_pool *p, int64_t child, const struct header *h, int marked,
                                               struct header *result);

#endif
