/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* Blocks with less are faster as parts of a sum to all, which needs no closing chunk and pads one row alone. */
enum { MIN_BLOCK_ROWS = 4, MIN_BLOCK_BYTES = 2048 };

/* Allocates large blocks of huge pages, where the kernel has some, because the first touch of each page is a fault. Returns
 * NULL if there is no memory. aligned_alloc does not serve: glibc maps new memory for it each time. */
static uint8_t *allocate(size_t bytes) {
    uint8_t *memory = malloc(bytes), *first = memory + (PAGE - (uintptr_t)memory % PAGE) % PAGE;
    if (memory && bytes > HUGE_PAGE) (void)madvise(first, (bytes - PAGE) / PAGE * PAGE, MADV_HUGEPAGE);
    return memory;
}

struct nf_call *call_create(const struct nf_request *request) {
    struct nf_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->request = *request;
    c->request.blocks = c->blocks = malloc((size_t)request->block_count * sizeof *c->blocks + 1);
    int64_t itemsize = nf_itemsize((enum nf_dtype)request->dtype);
    size_t bytes = (size_t)(request->elements * itemsize);
    c->rows.input = allocate(bytes + (size_t)(NF_ROW_MAX * itemsize)); /* with the padding */
    if (!c->blocks || !c->rows.input) {
        free(c->blocks);
        free(c->rows.input);
        free(c);
        return NULL;
    }
    if (request->block_count) memcpy(c->blocks, request->blocks, (size_t)request->block_count * sizeof *c->blocks);
    memcpy(c->rows.input, request->array, bytes);
    return c;
}

static int64_t rows_of(int64_t elements, const struct nf_codec *codec) { return (elements + codec->width - 1) / codec->width; }

static int64_t rows_of_blocks(const struct nf_call *c, const struct nf_codec *codec) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->request.block_count; i++) count += rows_of(c->blocks[i].elements, codec);
    return count;
}

/* Returns the form in an epoch (C19), by what all workers know. A call that may be rotated goes to all, also while it is half: each
 * worker learns the ranges of the next one from all sums, and all have to predict the same. */
static enum nf_form form_in(const struct nf_call *c, const struct nf_assignment *a, const struct nf_codec *codec) {
    int64_t blocks = c->request.block_count;
    int is_small = rows_of_blocks(c, codec) < MIN_BLOCK_ROWS * blocks || call_bytes(c) < MIN_BLOCK_BYTES * blocks;
    int learns_ranges = c->ranges.count > 0;
    return a->targets != NF_TARGETS || is_small || learns_ranges ? NF_TO_ALL : (enum nf_form)c->request.form;
}

/* Contributes zeros for the blocks of others. */
static void clear_other_blocks(struct nf_call *c, int64_t rank) {
    uint8_t *at = c->rows.input;
    for (int64_t i = 0; i < c->request.block_count; i++) {
        int64_t bytes = c->blocks[i].elements * nf_itemsize((enum nf_dtype)c->request.dtype);
        if (c->blocks[i].owner != rank) memset(at, 0, (size_t)bytes);
        at += bytes;
    }
}

/* Row `round` of each block that has one follow one another, so that neighboring chunks have different owners. */
static int place_rows(struct nf_call *c) {
    struct call_rows *rows = &c->rows;
    int64_t row = 0, width = rows->codec.width, bytes = call_row_bytes(c), size = rows->codec.itemsize;
    rows->places = malloc((size_t)rows->count * sizeof *rows->places);
    rows->tails = calloc((size_t)c->request.block_count, (size_t)bytes);
    if (!rows->places || !rows->tails) return -1;
    for (int64_t round = 0; row < rows->count; round++)
        for (int64_t i = 0, first = 0; i < c->request.block_count; first += c->blocks[i++].elements) {
            int64_t rest = c->blocks[i].elements - round * width, count = rest < width ? rest : width;
            if (count <= 0) continue;
            rows->places[row++] = (struct row_place){first + round * width, (int32_t)count, (int32_t)i};
            if (count < width)
                memcpy(rows->tails + i * bytes, rows->input + (first + round * width) * size, (size_t)(count * size));
        }
    return 0;
}

static void free_rows(struct call_rows *rows) {
    free(rows->own_exp);
    free(rows->places);
    free(rows->tails);
    rows->own_exp = rows->tails = NULL;
    rows->places = NULL;
}

int call_cut_rows(struct nf_call *c, const struct nf_assignment *a, enum nf_scheme scheme) {
    const struct nf_request *r = &c->request;
    struct call_rows *rows = &c->rows;
    struct nf_codec codec;
    nf_codec_init(&codec, (enum nf_dtype)r->dtype, scheme, (int)r->bits, a->lanes);
    enum nf_form form = form_in(c, a, &codec);
    if (rows->own_exp && rows->codec.format == codec.format && rows->form == form) return 0;
    free_rows(rows);
    rows->codec = codec;
    rows->form = form;
    if (r->form == NF_GATHER) clear_other_blocks(c, a->rank);
    rows->count = form == NF_TO_ALL ? rows_of(r->elements, &codec) : rows_of_blocks(c, &codec);
    int64_t bytes = call_bytes(c), padded = rows_of(r->elements, &codec) * call_row_bytes(c);
    memset(rows->input + bytes, 0, (size_t)(padded - bytes));
    if (form != NF_TO_ALL && place_rows(c)) return -1;
    rows->own_exp = calloc((size_t)rows->count, 4);
    if (!rows->own_exp) return -1;
    rows->agreed_exp = rows->own_exp + rows->count;
    rows->needs_reencode = rows->agreed_exp + rows->count;
    rows->observed_exp = rows->needs_reencode + rows->count;
    if (is_scaled(c))
        for (int64_t row = 0; row < rows->count; row++)
            rows->own_exp[row] = nf_row_exponent(&rows->codec, call_input_row(c, row), 0);
    return 0;
}

void call_clear_reencode_plan(struct reencode_plan *plan) {
    free(plan->special);
    free(plan->special_codes);
    free(plan->rows);
    free(plan->special_place);
    free(plan->halves);
    *plan = (struct reencode_plan){0};
}

static void free_division(struct call_attempt *attempt) {
    for (int64_t i = 0; i < attempt->tree_count; i++) call_clear_reencode_plan(&attempt->reencode[i]);
    free(attempt->balance);
    attempt->balance = NULL;
}

void call_start_attempt(struct nf_call *c, const struct nf_assignment *a) {
    free_division(&c->attempt);
    c->attempt = (struct call_attempt){
        .workers = a->workers,
        .contributors = a->workers,
        .quorum = a->quorum,
        .rank = a->rank,
        .has_newcomers = has_newcomers(a),
        .tree_count = a->tree_count,
        .error = NF_PENDING,
        .excess.index = -1,
    };
    c->handover = (struct call_handover){0};
    struct nf_outcome *o = &c->outcome;
    o->min_contributors = o->max_contributors = o->sum_count = o->contributions = 0;
    nf_codec_set_workers(&c->rows.codec, a->workers, c->request.op == NF_AVERAGE);
    memset(c->rows.needs_reencode, 0, (size_t)c->rows.count);
    int64_t from = 0;
    for (int64_t i = 0; i < a->tree_count; i++) {
        int is_last = i + 1 == a->tree_count;
        int64_t end = is_last ? c->rows.count : (int64_t)rint(a->trees[i].cumulative_share * (double)c->rows.count);
        if (end > c->rows.count) end = c->rows.count;
        if (end < from) end = from;
        c->attempt.run[i] = (struct nf_run){from, end};
        from = end;
    }
}

int call_divide_rows(struct nf_call *c, const struct nf_assignment *a, const int64_t *rows_ahead) {
    int failed = 0;
    memcpy(c->attempt.rows_ahead, rows_ahead, (size_t)a->tree_count * sizeof *rows_ahead);
    /* A job with a quorum has no stripes, because all workers would have to report. Where scatters have none, gathers start beside
     * them: the openings of calls have their places in one order then. */
    int has_stripes = !a->quorum && c->rows.form == NF_TO_ALL;
    c->attempt.balance = !has_stripes ? NULL : nf_balance_create(c->rows.count, a, rows_ahead, &failed);
    return failed ? -1 : 0;
}

struct nf_run call_run(const struct nf_call *c, int64_t tree, int64_t stripe) {
    return c->attempt.balance ? c->attempt.balance->run[stripe][tree] : c->attempt.run[tree];
}

void call_retain_result(struct nf_call *c) { memcpy(c->rows.input, c->request.array, (size_t)call_bytes(c)); }

void call_release_result(struct nf_call *c) {
    free(c->rows.input);
    c->rows.input = NULL;
}

void call_restore_input(struct nf_call *c) { memcpy(c->request.array, c->rows.input, (size_t)call_bytes(c)); }

void call_free(struct nf_call *c) {
    free_division(&c->attempt);
    free(c->ranges.mean_square);
    free(c->ranges.source);
    free_rows(&c->rows);
    free(c->blocks);
    free(c->rows.input);
    free(c);
}

void call_write_sums(struct nf_call *c, const struct nf_codec *codec, int64_t row, const uint32_t *lanes, int bits,
                     const int32_t *special_codes) {
    struct row_place place = call_row_place(c, codec->width, row);
    int64_t at = place.first, count = place.count;
    if (count <= 0 || !call_wants_row(c, row)) return; /* the padding of a last row */
    uint8_t *to = (uint8_t *)c->request.array + at * codec->itemsize;
    struct nf_excess excess = nf_row_unpack(codec, to, count, lanes, bits, special_codes), *first = &c->attempt.excess;
    if (excess.index < 0 || (first->index >= 0 && first->index < at + excess.index)) return;
    *first = (struct nf_excess){at + excess.index, excess.total};
}
