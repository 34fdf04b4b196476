/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One all-reduce: its numbers, and the parts that its trees carry, docs/protocol.md, sections 5.3 and 6. The chunks of a call
 * are rows of elements (codec.h), the last one padded with zeros; each tree carries a run of rows. */

#ifndef NETFOLD_CALL_H
#define NETFOLD_CALL_H

#include "balance.h"
#include "codec.h"
#include "tree.h"

/* What a segment carries; of a call, what it waits for: DATA (or HAND) includes the opening. Of a call that is balanced, DATA
 * is a lap but for its last rows in each channel, which are a TAIL: they say what scale the next lap's first rows have, so they
 * wait until that lap is divided by a VOTE. */
enum part { WAITING, RESUME, HAND, OPENING, DATA, KINDS, REPEAT, CLOSING, OVER, TAIL, VOTE, STRANGE };

/* STRANGE: chunks of others' calls, to which a worker who is not in them adds nothing. */

enum {
    FINGERPRINT = 3, /* lanes of the opening */
    NUMBERS = 2 * NF_UNDER_WAY + 1, /* calls are told apart modulo this many, where packets have lanes enough */
    VOTES_MAX = 2 * NUMBERS,
    DIGITS = 6, /* of a call's number, each a byte, where workers come later: no job makes 2^48 calls */
};

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
    struct hurry hurry;
    int64_t quorum, newcomers; /* the assignment's; and whether it `takes_newcomers` */
    int64_t epoch;             /* it was begun in, the last time; 0: none */
    int alone;                 /* the first one of its epoch */
    int opened;                /* all are known to be in the same call */
    int64_t wrong;             /* why it cannot go on, NF_PENDING: it can */
    int64_t result;            /* NF_DONE or NF_SUM_OVERFLOW */
    int kept, released;        /* `kept`: its result, in `input`, as others may lack it; `released`: nobody else needs it */
    int64_t holders;           /* who have its result, in a call that is handed over; `holding`: this worker too; */
    int64_t callers;           /* and who are in it */
    int holding;
    struct nf_codec codec;
    int64_t workers, rows;
    struct nf_excess excess; /* the first sum that does not fit, by its place in the array */
    uint8_t *input;  /* a copy of the array, padded */
    uint8_t *own;    /* by row: this worker's exponent, */
    uint8_t *agreed; /* the largest of all, */
    uint8_t *repeat; /* whether it has to be asked for again, */
    uint8_t *seen;   /* and of a tree's first rows, what to predict for the next call of this kind */
    int predicted;   /* the first rows have scales without an opening */
    int64_t turn;    /* which of its kind's calls this is, predict.h */
    int64_t overflows;
    uint64_t print;  /* what is the same at all workers in the call */
    int64_t verdict[4];       /* of a call that is handed over: result, and index and total of the outcome */
    int64_t ballot;           /* of RESUME: what this worker adds 1 to, */
    int64_t votes[VOTES_MAX]; /* and the sums */
    struct nf_balance *balance; /* NULL: each tree carries the run of its `again` */
    int64_t digit, said, told, newest; /* of RESUME with newcomers: which digit of the newest call's number all agree on, what this
                                        * worker says, the greatest of all, and what is known of the number */
    int64_t missed[NUMBERS];  /* with newcomers: who went past the calls without their results; this worker, then how many */
    int64_t sizes[NUMBERS];   /* with newcomers: how many chunks the calls take that may be handed over; own ones, then the sums */
    int64_t strangers;        /* and who has been in none of them: 1 if this worker, then how many */
    struct again again[NF_TREES_MAX];
    int64_t tree_count;
};

struct nf_call *call_create(const struct nf_request *request);
/* Cuts the array into rows. -1: no memory. */
int call_cut(struct nf_call *c, int64_t lanes);
/* Begins the call in an epoch, with nothing known. */
void call_restart(struct nf_call *c, const struct nf_assignment *a);
/* Deals the rows out to trees, in laps if there are enough. -1: no memory. */
int call_spread(struct nf_call *c, const struct nf_assignment *a, const struct tree *trees);
/* A tree's rows of a lap, and whether all laps are divided. */
struct nf_run call_run(const struct nf_call *c, int64_t tree, int64_t lap);
static inline int call_divided(const struct nf_call *c) {
    return !c->balance || c->part != DATA || c->balance->divided == c->balance->laps;
}
/* The rows of a tree whose scales no earlier row of the call brings. */
static inline int64_t call_first_rows(const struct nf_call *c, const struct tree *t) {
    struct nf_run run = call_run(c, t->index, 0);
    int64_t ahead = rows_ahead(t), count = run.last - run.first;
    return count < ahead ? count : ahead;
}
/* Keeps the result in place of the input. */
void call_keep(struct nf_call *c);
void call_restore(struct nf_call *c);
void call_free(struct nf_call *c);

/* What a chunk carries, and what its result is taken for. call_take gives a status: NF_PENDING if all is well. */
void call_fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h);
int64_t call_take(const struct tree *t, struct segment *s, int64_t chunk, struct header *h, double now);

/* How many chunks a part has in a tree; prepares what the part needs. -1: no memory. */
int64_t call_plan(struct nf_call *c, enum part part, const struct tree *t);

/* Writes the sums of a row where they belong. Lanes of a row of 64-bit integers that are beyond int64 are remembered, the first
 * one of the array. */
void call_write_sums(struct nf_call *c, int64_t row, const uint32_t *lanes, int bits, const int32_t *kinds);

static inline int64_t call_row_bytes(const struct nf_call *c) { return c->codec.width * c->codec.itemsize; }
static inline const void *call_input_row(const struct nf_call *c, int64_t row) { return c->input + row * call_row_bytes(c); }

/* Whether the resume chunk says who was in no call: a quorum is for that, too. */
static inline int takes_newcomers(const struct nf_assignment *a) { return a->quorum || a->newcomers; }

static inline int is_scaled(const struct nf_call *c) { return nf_is_scaled(&c->codec); }
static inline int shares_exponents(const struct nf_call *c) { return is_scaled(c) && !c->codec.fixed; }

/* Whether scales are predicted where that is possible: two numbers in a lane have no bits to spare for it. */
static inline int predicts(const struct nf_call *c) { return shares_exponents(c) && c->codec.form != NF_PAIRS; }

/* Whether the data of a tree have to wait for the result of its opening. */
static inline int waits_for_opening(const struct nf_call *c) { return shares_exponents(c) && !c->predicted; }

static inline int64_t call_bytes(const struct nf_call *c) {
    return c->request.elements * nf_itemsize((enum nf_dtype)c->request.dtype);
}

#endif
