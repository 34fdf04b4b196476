/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The slots of one tree at its root, and what becomes of a GRADIENT there: docs/protocol.md, section 3. No I/O. The same is
 * said in numpy by server/slots.py. */

#ifndef NETFOLD_SLOTS_H
#define NETFOLD_SLOTS_H

#include <stdint.h>

#include "tree.h"

/* Those of wire.py that a parameter server counts. */
enum nf_verdict {
    NF_ABSORBED = 1,
    NF_RESULT_SENT = 2,
    NF_RESULT_REPEATED = 3,
    NF_UNADMITTED = 16,
    NF_STALE_EPOCH = 17,
    NF_BAD_SLOT = 18,
    NF_STALE_CHUNK = 19,
    NF_DUPLICATE = 20,
    NF_MALFORMED = 21,
    NF_LATE = 24,
    NF_LAPPED = 25,
    NF_VERDICTS = 32
};

struct nf_pool {
    int64_t slots, lanes, children, words;
    uint32_t *tags;
    uint64_t *seen; /* `words` for each slot, a bit for each child */
    uint8_t *flags, *exponents;
    int32_t *sums; /* in host order */
    int64_t own, least; /* `least`: with a quorum (3.7), the contributions that are enough, else 0; `own`: of the senders, so
                         * many are the root's children, the others are under its inner nodes */
    struct nf_sealing *sealing;
};

/* Of a slot, with a quorum. */
struct nf_sealing {
    uint8_t count, asked, sealed;
};

/* 0, or -1: no memory. */
int nf_pool_create(struct nf_pool *p, int64_t slots, int64_t lanes, int64_t children);
void nf_pool_free(struct nf_pool *p);

/* Sums may go with `least` contributions, see `own` and `least` above. 0, or -1: no memory. */
int nf_pool_quorum(struct nf_pool *p, int64_t own, int64_t least);

/* Takes a packet of the child with this bit. NF_RESULT_SENT, NF_RESULT_REPEATED, NF_LATE, NF_LAPPED: then `result` is the
 * answer (the packet's memory may be the same). */
enum nf_verdict nf_pool_gradient(struct nf_pool *p, int64_t child, const struct header *h, int marked, struct header *result);

#endif
