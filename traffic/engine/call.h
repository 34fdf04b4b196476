/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One all-reduce: its numbers, and the parts that its trees carry, docs/protocol.md, sections 5.3 and 6. The chunks of a call
 * are rows of elements (codec.h), the last one padded with zeros; each tree carries a run of rows. */

#ifndef NETFOLD_CALL_H
#define NETFOLD_CALL_H

#include "codec.h"
#include "tree.h"

/* In their order. */
enum part { WAITING, RESUME, OPENING, DATA, KINDS, REPEAT, CLOSING, OVER };

enum { FINGERPRINT = 3 }; /* lanes of the opening */

/* The rows of a tree that go again. */
struct again {
    int64_t first, last; /* the tree's run */
    int64_t special_count, count;
    int64_t *special; /* rows with NaN or infinities, ascending, */
    int32_t *kinds;   /* and the sums of their kinds */
    int64_t *rows;    /* all that are repeated, ascending, */
    int64_t *place;   /* and each one's place in `special`, or -1 */
    int32_t *halves;  /* of int32: two rows for each */
};

struct nf_call {
    struct nf_call *next;
    struct nf_request request;
    struct nf_outcome outcome;
    int64_t part, outstanding; /* segments whose results are not all in */
    int64_t epochs;            /* begun in this call */
    int complete;              /* all results are in, but perhaps not at all workers; `result`: NF_DONE or NF_SUM_OVERFLOW */
    int64_t result;
    struct nf_codec codec;
    int64_t workers, rows;
    struct nf_excess excess; /* the first sum that does not fit, by its place in the array */
    uint8_t *input;  /* a copy of the array, padded */
    uint8_t *own;    /* by row: this worker's exponent, */
    uint8_t *agreed; /* the largest of all, */
    uint8_t *repeat; /* and whether it has to be asked for again */
    int64_t overflows;
    int32_t votes[NF_CALLS]; /* RESUME's result */
    struct again again[NF_TREES_MAX];
    int64_t tree_count;
};

struct nf_call *call_create(const struct nf_request *request);
/* Cuts the array into rows. -1: no memory. */
int call_cut(struct nf_call *c, int64_t lanes);
/* Begins the call in an epoch, with nothing known. */
void call_restart(struct nf_call *c, const struct nf_assignment *a);
void call_restore(struct nf_call *c);
void call_free(struct nf_call *c);

/* What a chunk carries, and what its result is taken for. call_take gives a status: NF_PENDING if all is well. */
void call_fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h);
int64_t call_take(const struct tree *t, struct segment *s, int64_t chunk, struct header *h);

/* How many chunks a part has in a tree; prepares what the part needs. -1: no memory. */
int64_t call_plan(struct nf_call *c, enum part part, const struct tree *t);

/* After the last repetition: joins the halves of int32. NF_SUM_OVERFLOW if a sum does not fit, else NF_DONE. */
int64_t call_join(struct nf_call *c);


#endif
