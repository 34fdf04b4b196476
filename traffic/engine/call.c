/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hand.h"
#include "kind.h"
#include "repeat.h"
#include "resume.h"

struct nf_call *call_create(const struct nf_request *request) {
    struct nf_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->request = *request;
    int64_t itemsize = nf_itemsize((enum nf_dtype)request->dtype);
    size_t bytes = (size_t)(request->elements * itemsize);
    c->input = malloc(bytes + (size_t)(NF_WIDTH_MAX * itemsize)); /* room for the padding */
    if (!c->input) {
        free(c);
        return NULL;
    }
    memcpy(c->input, request->array, bytes);
    return c;
}

int call_cut(struct nf_call *c, int64_t lanes) {
    const struct nf_request *r = &c->request;
    nf_codec_start(&c->codec, (enum nf_dtype)r->dtype, (enum nf_scheme)r->scheme, (int)r->bits, lanes);
    c->rows = (r->elements + c->codec.width - 1) / c->codec.width;
    int64_t bytes = r->elements * c->codec.itemsize;
    memset(c->input + bytes, 0, (size_t)(c->rows * call_row_bytes(c) - bytes));
    c->own = calloc((size_t)c->rows, 4);
    if (!c->own) return -1;
    c->agreed = c->own + c->rows;
    c->repeat = c->agreed + c->rows;
    c->seen = c->repeat + c->rows;
    if (is_scaled(c))
        for (int64_t row = 0; row < c->rows; row++) c->own[row] = nf_row_exponent(&c->codec, call_input_row(c, row), 0);
    return 0;
}

static void forget_spread(struct nf_call *c) {
    repeat_forget(c);
    free(c->balance);
    c->balance = NULL;
}

void call_restart(struct nf_call *c, const struct nf_assignment *a) {
    forget_spread(c);
    c->workers = c->callers = a->workers;
    c->opened = c->predicted = 0;
    c->holders = c->holding = 0;
    c->overflows = 0;
    c->wrong = NF_PENDING;
    c->quorum = a->quorum;
    c->newcomers = takes_newcomers(a);
    c->hurry.count = 0;
    c->outcome.least = c->outcome.most = c->outcome.sums = c->outcome.contributions = 0;
    c->tree_count = a->tree_count;
    c->excess.index = -1;
    nf_codec_workers(&c->codec, c->workers, c->request.op == NF_AVERAGE);
    memset(c->repeat, 0, (size_t)c->rows);
    int64_t from = 0;
    for (int64_t i = 0; i < a->tree_count; i++) {
        int64_t upto = i + 1 == a->tree_count ? c->rows : (int64_t)rint(a->trees[i].upto * (double)c->rows);
        if (upto > c->rows) upto = c->rows;
        c->again[i].first = from;
        c->again[i].last = from = upto > from ? upto : from;
    }
}

int call_spread(struct nf_call *c, const struct nf_assignment *a, const struct tree *trees) {
    int64_t channels[NF_TREES_MAX];
    int failed = 0;
    for (int64_t i = 0; i < a->tree_count; i++) channels[i] = rows_ahead(&trees[i]);
    c->balance = a->quorum ? NULL : nf_balance_start(c->rows, a, channels, &failed); /* all would have to vote */
    return failed ? -1 : 0;
}

struct nf_run call_run(const struct nf_call *c, int64_t tree, int64_t lap) {
    return c->balance ? c->balance->run[lap][tree] : (struct nf_run){c->again[tree].first, c->again[tree].last};
}

void call_restore(struct nf_call *c) {
    memcpy(c->request.array, c->input, (size_t)call_bytes(c));
}

void call_free(struct nf_call *c) {
    forget_spread(c);
    free(c->own);
    free(c->input);
    free(c);
}

void call_keep(struct nf_call *c) { memcpy(c->input, c->request.array, (size_t)call_bytes(c)); }

static void fill_opening(const struct nf_call *c, const struct tree *t, struct header *h) {
    for (int i = 0; i < FINGERPRINT; i++) lanes_of(h)[i] = __builtin_bswap32(kind_print_lane(c, i));
    if (c->holders) return;
    int64_t first = call_run(c, t->index, 0).first;
    for (int64_t row = first; row < first + call_first_rows(c, t); row++)
        if (c->own[row] > h->exponent) h->exponent = c->own[row];
}

int64_t call_plan(struct nf_call *c, enum part part, const struct tree *t) {
    struct again *a = &c->again[t->index];
    switch (part) {
    case RESUME:
    case CLOSING:
        return t->index == 0;
    case OPENING:
        return t->index == 0 || (call_first_rows(c, t) && waits_for_opening(c) && !c->holders);
    case DATA:
        return a->last - a->first;
    case VOTE:
        return t->index == 0;
    case HAND:
        return t->index == 0 ? hand_chunks(c, t) : 0;
    case KINDS:
        return repeat_plan_kinds(c, a);
    case REPEAT:
        return repeat_plan(c, a);
    default:
        return 0;
    }
}

/* Whether no earlier row of the call is on the row's channel. */
static int is_first(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row) {
    return s->lap == 0 && row < call_run(c, t->index, 0).first + rows_ahead(t);
}

/* The next row of the row's channel, or -1. */
static int64_t follower(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row) {
    if (c->balance) return nf_balance_follower(c->balance, t->index, s->lap, row, rows_ahead(t));
    int64_t next = row + rows_ahead(t);
    return next < c->again[t->index].last ? next : -1;
}

/* What does not fit the scale: all see it, and learn what would. */
static void decline(const struct nf_call *c, int64_t row, struct header *h) {
    if (c->own[row] > h->exponent) h->exponent = c->own[row];
    h->flags = OVERFLOW;
    memset(lanes_of(h), 0, (size_t)(4 * c->codec.lanes));
}

static void fill_data(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row, struct header *h) {
    const void *from = call_input_row(c, row);
    if (c->codec.fixed) {
        h->exponent = c->own[row];
        h->flags = nf_row_pack_fixed(&c->codec, lanes_of(h), from) ? OVERFLOW : 0;
        return;
    }
    if (c->codec.form == NF_FLOATS) h->flags |= FLOATS;
    int64_t next = follower(c, t, s, row);
    h->exponent = is_scaled(c) && next >= 0 ? c->own[next] : 0;
    if (predicts(c) && is_first(c, t, s, row)) {
        if (c->own[row] > h->exponent) h->exponent = c->own[row];
        if (c->predicted && c->own[row] > c->agreed[row]) {
            decline(c, row, h);
            return;
        }
    }
    if (c->quorum && c->own[row] > c->agreed[row]) {
        decline(c, row, h);
        return;
    }
    if (c->agreed[row] == NF_NOT_FINITE)
        memset(lanes_of(h), 0, (size_t)(4 * c->codec.lanes));
    else
        nf_row_pack(&c->codec, lanes_of(h), from, nf_row_bits(&c->codec, c->agreed[row]), 0);
}

void call_fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->call;
    const struct again *a = &c->again[t->index];
    if (s->part != DATA && s->part != TAIL) memset(lanes_of(h), 0, (size_t)(4 * t->lanes));
    switch (s->part) {
    case RESUME:
        resume_fill(c, h);
        break;
    case HAND:
        hand_fill(c, t, chunk, h);
        break;
    case CLOSING:
        break;
    case STRANGE:
        h->reserved = 0;
        break;
    case OPENING:
        fill_opening(c, t, h);
        break;
    case DATA:
    case TAIL:
        fill_data(c, t, s, s->first + chunk, h);
        break;
    case VOTE:
        nf_balance_fill(c->balance, lanes_of(h));
        break;
    case KINDS:
        repeat_fill_kinds(c, a, chunk, h);
        break;
    default:
        repeat_fill(c, a, chunk, h);
    }
}

void call_write_sums(struct nf_call *c, int64_t row, const uint32_t *lanes, int bits, const int32_t *kinds) {
    int64_t at = row * c->codec.width, rest = c->request.elements - at;
    uint8_t *to = (uint8_t *)c->request.array + at * c->codec.itemsize;
    struct nf_excess excess = nf_row_unpack(&c->codec, to, rest < c->codec.width ? rest : c->codec.width, lanes, bits, kinds);
    if (excess.index < 0 || (c->excess.index >= 0 && c->excess.index < at + excess.index)) return;
    c->excess = (struct nf_excess){at + excess.index, excess.total};
}

static int64_t take_data(struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row, struct header *h) {
    int overflow = (h->flags & OVERFLOW) != 0;
    if (c->codec.form == NF_FLOATS) {
        call_write_sums(c, row, lanes_of(h), 0, NULL);
        return h->flags & FLOATS ? NF_PENDING : NF_NOT_FLOATS;
    }
    if (c->codec.form == NF_WORDS) {
        call_write_sums(c, row, lanes_of(h), 0, NULL);
        c->repeat[row] = (uint8_t)overflow;
        return NF_PENDING;
    }
    if (c->codec.fixed) {
        c->agreed[row] = h->exponent;
        c->repeat[row] = overflow || h->exponent == NF_NOT_FINITE;
        if (!c->repeat[row]) call_write_sums(c, row, lanes_of(h), c->codec.fixed_bits, NULL);
        return NF_PENDING;
    }
    int64_t next = follower(c, t, s, row);
    uint8_t scale = c->agreed[row], seen = h->exponent;
    int foretold = c->predicted && is_first(c, t, s, row), declined = overflow && !foretold;
    if (declined && !c->quorum) return NF_BEYOND_SCALE;
    c->repeat[row] = foretold ? overflow || nf_mispredicted(kind_tolerance(c), scale, seen)
                              : declined || (is_scaled(c) && scale == NF_NOT_FINITE);
    if (!c->repeat[row]) call_write_sums(c, row, lanes_of(h), nf_row_bits(&c->codec, scale), NULL);
    if (foretold || declined) c->agreed[row] = seen;
    if (is_first(c, t, s, row) && seen && seen != NF_NOT_FINITE) c->seen[row] = seen;
    if (next >= 0) c->agreed[next] = seen;
    return NF_PENDING;
}

/* Only the first tree's opening is everybody's, so it alone can tell everybody. */
static int64_t take_opening(struct nf_call *c, const struct tree *t, struct header *h) {
    if (t->index == 0) c->opened = 1;
    int64_t callers = c->quorum ? h->reserved & COUNT : c->callers;
    for (int i = 0; i < FINGERPRINT; i++)
        if (__builtin_bswap32(lanes_of(h)[i]) != (uint32_t)callers * kind_print_lane(c, i)) return NF_MISMATCH;
    if (waits_for_opening(c) && !c->holders)
        memset(c->agreed + call_run(c, t->index, 0).first, h->exponent, (size_t)call_first_rows(c, t));
    return NF_PENDING;
}

/* Averages are over those who are in the sum. */
static void note_count(struct nf_call *c, int64_t count) {
    struct nf_outcome *o = &c->outcome;
    if (c->request.op == NF_AVERAGE && count) c->codec.divisor = count;
    if (!o->sums || count < o->least) o->least = count;
    if (count > o->most) o->most = count;
    o->sums++;
    o->contributions += count;
}

int64_t call_take(const struct tree *t, struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->call;
    const struct again *a = &c->again[t->index];
    if (c->quorum && (s->part == DATA || s->part == REPEAT)) note_count(c, h->reserved & COUNT);
    switch (s->part) {
    case RESUME:
        resume_take(c, t, h);
        return NF_PENDING;
    case HAND:
        hand_take(c, t, chunk, h);
        return NF_PENDING;
    case OPENING:
        return take_opening(c, t, h);
    case DATA:
    case TAIL:
        if (c->balance) nf_balance_got(c->balance, t->index, now);
        return take_data(c, t, s, s->first + chunk, h);
    case VOTE:
        nf_balance_take(c->balance, lanes_of(h));
        return NF_PENDING;
    case KINDS:
        repeat_take_kinds(c, a, chunk, h);
        return NF_PENDING;
    case REPEAT:
        return repeat_take(c, a, chunk, h);
    default:
        return NF_PENDING;
    }
}

