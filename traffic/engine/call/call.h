/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One call: the request, its rows, and its attempts in epochs. docs/reference/protocol.md, sections 5.3 and 6. The chunks of a call are rows
 * of elements (numerics/codec.h), the last one padded with zeros. Each tree carries a run of rows, or one in each stripe. */

#ifndef NETFOLD_CALL_H
#define NETFOLD_CALL_H

#include "../numerics/codec.h"
#include "../transport/segment.h"
#include "balance.h"
#include "request.h"

/* A call waits for its turn, waits for the result of a part (CALL_DATA includes the opening), or is finished. */
enum call_state { CALL_WAITING, CALL_HANDOVER, CALL_DATA, CALL_SPECIALS, CALL_REENCODED, CALL_CLOSING, CALL_FINISHED };

/* The elements of a row, in the array. */
struct row_place {
    int64_t first;
    int32_t count, block;
};

/* The rows are made once the number of lanes is known, and kept over epochs. */
struct call_rows {
    struct nf_codec codec;
    int64_t count;
    enum nf_form form; /* in this epoch: a small call, or one where no packet may be targeted, is to all */
    struct row_place *places; /* by row, if the form is not NF_TO_ALL */
    uint8_t *tails; /* of each block the last row, padded, if it is not whole */
    uint8_t *input; /* a padded copy of the array; later the retained result, NULL: it was released */
    /* by row: this worker's exponent, the largest of all workers', whether the row has to be re-encoded, and (of a tree's first
     * rows) the largest exponent for the scale predictor */
    uint8_t *own_exp, *agreed_exp, *needs_reencode, *observed_exp;
};

/* Range bytes of the rows of the scheme quarter; NF_UNKNOWN_RANGE: none is known. `count` is 0 if the call has another
 * scheme. */
struct call_ranges {
    int64_t count, width; /* elements of a row */
    int64_t occurrence; /* of its profile, scale_predictor.h */
    int is_predicted;
    uint8_t *source, *predicted, *observed; /* range bytes: of an earlier call's sums, of this call's rows, and of its sums */
    double *mean_square; /* of sums that were not rotated */
};

/* The rows of a tree that are re-encoded. */
struct reencode_plan {
    int64_t special_count, count;
    int64_t *special; /* rows with special values, ascending, */
    int32_t *special_codes; /* and the sums of their codes */
    int64_t *rows; /* all rows, ascending, */
    int64_t *special_place; /* and the place of each in `special`, or -1 */
    int32_t *halves; /* of int32: two rows for each */
};

/* The state of the call in one epoch. */
struct call_attempt {
    int64_t workers, quorum, rank;
    int has_newcomers; /* call numbers are compared modulo CALL_MODULUS */
    int64_t contributors; /* workers that are in the call */
    int64_t tree_count;
    int64_t rows_ahead[NF_TREES_MAX]; /* of each tree */
    struct nf_run run[NF_TREES_MAX]; /* of each tree, unless there are stripes */
    struct nf_balance *balance; /* stripes, or NULL */
    int64_t occurrence; /* of its profile, scale_predictor.h */
    int has_predicted_scales;
    uint64_t fingerprint;
    struct quorum_tracker quorum_tracker;
    int is_opened; /* all workers are known to be in the same call */
    int64_t error; /* why the call cannot continue; NF_PENDING: it can */
    int64_t reencoded_chunks;
    struct reencode_plan reencode[NF_TREES_MAX];
    struct nf_excess excess; /* the first sum that does not fit, by its place in the array */
};

struct call_handover {
    int64_t holders; /* workers that have the result; 0: the call is not handed over */
    int is_holder; /* this worker is one */
    int64_t verdict[4]; /* result, and index and total of the outcome */
};

/* Only the session changes it. */
struct call_progress {
    enum call_state state;
    int64_t epoch; /* in which it was started last; 0: none */
    int is_first_of_epoch;
    int is_retained; /* finished, and its result may be needed by other workers */
    int is_released; /* the program does not need it any more */
    int is_ready; /* a scatter that lacked the closing result alone when its epoch ended */
};

struct nf_call {
    struct nf_call *next;
    struct nf_request request;
    struct nf_block *blocks; /* of the request */
    int64_t workers; /* of the epoch in which it was submitted, whose ranks the owners of blocks are; 0: there was none */
    int64_t order; /* of submission, from 0 */
    int32_t retransmits_before; /* those of this worker when the call started first */
    struct nf_outcome outcome;
    int64_t result; /* of the sums: NF_DONE or NF_SUM_OVERFLOW */
    struct call_rows rows;
    struct call_ranges ranges;
    struct call_attempt attempt;
    struct call_handover handover;
    struct call_progress progress;
};

/* Copies the array. Returns NULL if there is no memory. */
struct nf_call *call_create(const struct nf_request *request);
void call_free(struct nf_call *c);

/* Cuts the array into the scheme's rows, unless it is already cut so. Returns -1 if there is no memory. */
int call_cut_rows(struct nf_call *c, const struct nf_assignment *a, enum nf_scheme scheme);

/* Starts an attempt in an epoch: nothing is agreed yet. */
void call_start_attempt(struct nf_call *c, const struct nf_assignment *a);

/* Divides the rows over trees, in stripes if there are enough. Returns -1 if there is no memory. */
int call_divide_rows(struct nf_call *c, const struct nf_assignment *a, const int64_t *rows_ahead);

/* Returns the rows of a tree in a stripe. */
struct nf_run call_run(const struct nf_call *c, int64_t tree, int64_t stripe);

/* Returns whether all stripes are assigned to trees. */
static inline int call_is_assigned(const struct nf_call *c) {
    return !c->attempt.balance || c->attempt.balance->assigned_stripes == c->attempt.balance->stripes;
}

/* Returns the number of a tree's rows whose scales no earlier row of the call determines. */
static inline int64_t call_first_rows(const struct nf_call *c, int64_t tree) {
    struct nf_run run = call_run(c, tree, 0);
    int64_t ahead = c->attempt.rows_ahead[tree], count = run.last - run.first;
    return count < ahead ? count : ahead;
}

/* Copies the result to `input`, for other workers that may need it. */
void call_retain_result(struct nf_call *c);

/* Releases the copy of the array, or the retained result. */
void call_release_result(struct nf_call *c);

/* Restores the array. */
void call_restore_input(struct nf_call *c);

/* Forgets which rows of a tree are re-encoded. */
void call_clear_reencode_plan(struct reencode_plan *plan);

/* Writes the sums of a row of `codec` to the array, if this worker wants them. The first int64 sum of the array that does not fit is noted in `excess`. */
void call_write_sums(struct nf_call *c, const struct nf_codec *codec, int64_t row, const uint32_t *lanes, int bits,
                     const int32_t *special_codes);

/* Returns what seeds the random bits of a rotated row. */
static inline struct nf_rotation call_rotation(const struct nf_call *c, int64_t row) {
    const struct call_attempt *a = &c->attempt;
    return (struct nf_rotation){a->fingerprint, row, a->rank, a->workers};
}

static inline int64_t call_row_bytes(const struct nf_call *c) { return c->rows.codec.width * c->rows.codec.itemsize; }
static inline struct row_place call_row_place(const struct nf_call *c, int64_t width, int64_t row) {
    if (c->rows.places) return c->rows.places[row];
    int64_t rest = c->request.elements - row * width;
    return (struct row_place){row * width, (int32_t)(rest < width ? rest : width), 0};
}

/* Returns the row's elements, padded. */
static inline const void *call_input_row(const struct nf_call *c, int64_t row) {
    if (!c->rows.places) return c->rows.input + row * call_row_bytes(c);
    struct row_place place = c->rows.places[row];
    if (place.count < c->rows.codec.width) return c->rows.tails + place.block * call_row_bytes(c);
    return c->rows.input + place.first * c->rows.codec.itemsize;
}

/* Returns the rank of the worker whose block the row is of. The form is not NF_TO_ALL. */
static inline int64_t call_row_owner(const struct nf_call *c, int64_t row) {
    return c->blocks[c->rows.places[row].block].owner;
}
static inline int call_owns_row(const struct nf_call *c, int64_t row) { return call_row_owner(c, row) == c->attempt.rank; }
static inline int call_wants_row(const struct nf_call *c, int64_t row) {
    return c->rows.form == NF_TO_ALL || call_owns_row(c, row) == (c->rows.form == NF_SCATTER);
}

/* Returns whether the owner of a row of a scatter keeps its contribution, and adds it to the sum of the others: where no sum
 * saturates. */
static inline int call_keeps_own(const struct nf_call *c) {
    const struct nf_codec *codec = &c->rows.codec;
    return c->rows.form == NF_SCATTER && codec->format != NF_LANE_INT32 && !codec->is_fixed;
}

static inline int64_t call_bytes(const struct nf_call *c) {
    return c->request.elements * nf_itemsize((enum nf_dtype)c->request.dtype);
}

/* Returns whether the resume chunk counts workers without call state. An epoch with a quorum has them, too. */
static inline int has_newcomers(const struct nf_assignment *a) { return a->quorum || a->allow_newcomers; }

static inline int is_scaled(const struct nf_call *c) { return nf_is_scaled(&c->rows.codec); }
static inline int is_rotated(const struct nf_call *c) { return c->rows.codec.format == NF_LANE_ROTATED8X4; }
static inline int shares_exponents(const struct nf_call *c) {
    return is_scaled(c) && !c->rows.codec.is_fixed && !is_rotated(c);
}

/* Returns whether scales are predicted where possible: two values in a lane have no headroom for errors. */
static inline int predicts_scales(const struct nf_call *c) {
    return shares_exponents(c) && c->rows.codec.format != NF_LANE_FIXED16X2;
}

/* Returns whether a tree's data wait for the result of its opening. */
static inline int waits_for_opening(const struct nf_call *c) { return shares_exponents(c) && !c->attempt.has_predicted_scales; }

#endif
