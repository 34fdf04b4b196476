/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "../call/ranges.h"
#include "../call/scales.h"
#include "contributors.h"
#include "parts.h"
#include "rotated.h"

/* Returns whether no earlier row of the call is on the row's channel. */
static int is_first(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row) {
    return s->stripe == 0 && row < call_run(c, t->index, 0).first + rows_ahead(t);
}

/* Returns the next row of the row's channel, or -1. */
static int64_t next_row(const struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row) {
    const struct nf_balance *b = c->attempt.balance;
    if (b) return nf_balance_next_row(b, t->index, s->stripe, row, rows_ahead(t));
    int64_t next = row + rows_ahead(t);
    return next < c->attempt.run[t->index].last ? next : -1;
}

/* The row does not fit its scale: it is sent as zeros, with a scale that would fit. */
static void fill_overflow(const struct nf_call *c, int64_t row, struct header *h) {
    if (c->rows.own_exp[row] > h->exponent) h->exponent = c->rows.own_exp[row];
    h->flags = FLAG_OVERFLOW;
    memset(lanes_of(h), 0, (size_t)(4 * c->rows.codec.lanes));
}

static void fill_row(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    const struct nf_codec *codec = &c->rows.codec;
    int64_t row = s->first + chunk;
    const void *from = call_input_row(c, row);
    uint8_t own = c->rows.own_exp[row], agreed = c->rows.agreed_exp[row];
    if (codec->is_fixed) {
        h->exponent = own;
        h->flags = nf_row_pack_fixed(codec, lanes_of(h), from) ? FLAG_OVERFLOW : 0;
        return;
    }
    if (is_rotated(c)) {
        rotated_fill(c, row, h);
        return;
    }
    if (codec->format == NF_LANE_FLOAT32) h->flags |= FLAG_FLOATS;
    int64_t next = next_row(c, t, s, row);
    h->exponent = is_scaled(c) && next >= 0 ? c->rows.own_exp[next] : 0;
    if (predicts_scales(c) && is_first(c, t, s, row)) {
        if (own > h->exponent) h->exponent = own;
        if (c->attempt.has_predicted_scales && own > agreed) {
            fill_overflow(c, row, h);
            return;
        }
    }
    if (c->attempt.quorum && own > agreed) {
        fill_overflow(c, row, h);
        return;
    }
    if (agreed == NF_NOT_FINITE)
        memset(lanes_of(h), 0, (size_t)(4 * codec->lanes));
    else
        nf_row_pack(codec, lanes_of(h), from, nf_row_bits(codec, agreed), 0);
}

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    int64_t row = s->first + chunk;
    fill_row(t, s, chunk, h);
    if (c->rows.form == NF_TO_ALL) return;
    h->lanes = target_field(0, call_row_owner(c, row));
    if (!call_owns_row(c, row) || !call_keeps_own(c)) h->flags |= FLAG_DATA;
}

/* Adds the owner's lanes, which it did not send, to the sum of the others. */
static void add_own(const struct nf_codec *codec, uint32_t *lanes, const uint32_t *own) {
    for (int64_t i = 0; i < codec->lanes; i++) {
        uint32_t a = __builtin_bswap32(lanes[i]), b = __builtin_bswap32(own[i]);
        lanes[i] = __builtin_bswap32(codec->format == NF_LANE_FLOAT32 ? nf_add_float_bits(a, b) : a + b);
    }
}

/* Takes scaled floats: the result's exponent is that of the next row on the channel. */
static int64_t take_block_float(struct nf_call *c, const struct tree *t, const struct segment *s, int64_t row,
                                struct header *h) {
    struct call_rows *rows = &c->rows;
    int is_overflow = (h->flags & FLAG_OVERFLOW) != 0;
    int64_t next = next_row(c, t, s, row);
    uint8_t scale = rows->agreed_exp[row], observed = h->exponent;
    int is_predicted = c->attempt.has_predicted_scales && is_first(c, t, s, row), is_refused = is_overflow && !is_predicted;
    if (is_refused && !c->attempt.quorum) return NF_SCALE_OVERFLOW;
    rows->needs_reencode[row] = is_predicted ? is_overflow || nf_is_mispredicted(scales_tolerance(c), scale, observed)
                                             : is_refused || (is_scaled(c) && scale == NF_NOT_FINITE);
    if (!rows->needs_reencode[row]) {
        call_write_sums(c, &rows->codec, row, lanes_of(h), nf_row_bits(&rows->codec, scale), NULL);
        ranges_note_sums(c, &rows->codec, row);
    }
    if (is_predicted || is_refused) rows->agreed_exp[row] = observed;
    if (is_first(c, t, s, row) && observed && observed != NF_NOT_FINITE) rows->observed_exp[row] = observed;
    if (next >= 0) rows->agreed_exp[next] = observed;
    return NF_PENDING;
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    struct nf_call *c = s->owner;
    const struct nf_codec *codec = &c->rows.codec;
    int64_t row = s->first + chunk;
    uint8_t is_overflow = (h->flags & FLAG_OVERFLOW) != 0;
    if (c->attempt.quorum) note_contributors(c, h->reserved & COUNT_MASK);
    if (c->attempt.balance) nf_balance_on_row(c->attempt.balance, t->index, now);
    if (call_keeps_own(c) && call_owns_row(c, row)) add_own(codec, lanes_of(h), lanes_of(own_packet(t, s, chunk)));
    if (codec->format == NF_LANE_FLOAT32) {
        call_write_sums(c, codec, row, lanes_of(h), 0, NULL);
        return h->flags & FLAG_FLOATS ? NF_PENDING : NF_FLOATS_UNSUPPORTED;
    }
    if (codec->format == NF_LANE_INT32) {
        call_write_sums(c, codec, row, lanes_of(h), 0, NULL);
        c->rows.needs_reencode[row] = is_overflow;
        return NF_PENDING;
    }
    if (is_rotated(c)) {
        rotated_take(c, row, h);
        return NF_PENDING;
    }
    if (codec->is_fixed) {
        c->rows.agreed_exp[row] = h->exponent;
        c->rows.needs_reencode[row] = is_overflow || h->exponent == NF_NOT_FINITE;
        if (!c->rows.needs_reencode[row]) call_write_sums(c, codec, row, lanes_of(h), codec->fixed_bits, NULL);
        return NF_PENDING;
    }
    return take_block_float(c, t, s, row, h);
}

static int64_t plan(struct nf_call *c, const struct tree *t) {
    return c->attempt.run[t->index].last - c->attempt.run[t->index].first;
}

const struct call_part data_part = {{MAIN, 1, fill, take}, plan};
const struct call_part stripe_tail_part = {{MAIN, 0, fill, take}, NULL};
