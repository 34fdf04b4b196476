/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "rotated.h"

#include "../call/ranges.h"

void rotated_fill(const struct nf_call *c, int64_t row, struct header *h) {
    const struct nf_codec *codec = &c->rows.codec;
    const struct nf_rotation rotation = call_rotation(c, row);
    uint8_t own = c->rows.own_exp[row], range = c->ranges.predicted[row];
    int is_encoded = own != NF_NOT_FINITE && range != NF_UNKNOWN_RANGE;
    h->exponent = own;
    if (is_encoded && nf_row_pack_rotated(codec, lanes_of(h), call_input_row(c, row), own, range, &rotation)) return;
    h->flags = is_encoded ? FLAG_OVERFLOW : 0;
    memset(lanes_of(h), 0, (size_t)(4 * codec->lanes));
}

void rotated_take(struct nf_call *c, int64_t row, struct header *h) {
    const struct nf_codec *codec = &c->rows.codec;
    const struct nf_rotation rotation = call_rotation(c, row);
    uint8_t range = c->ranges.predicted[row];
    c->rows.agreed_exp[row] = h->exponent;
    c->rows.needs_reencode[row] = 1;
    if (h->flags & FLAG_OVERFLOW || h->exponent == NF_NOT_FINITE) return;
    int64_t at = row * codec->width, rest = c->request.elements - at, count = rest < codec->width ? rest : codec->width;
    uint8_t *to = (uint8_t *)c->request.array + at * codec->itemsize;
    if (h->exponent == 0) {
        memset(to, 0, (size_t)(count * codec->itemsize));
        c->rows.needs_reencode[row] = 0;
        return;
    }
    if (range == NF_UNKNOWN_RANGE) return;
    uint8_t observed = nf_row_unpack_rotated(codec, to, count, lanes_of(h), range, &rotation);
    c->rows.needs_reencode[row] = (uint8_t)ranges_note_rotated(c, row, observed);
    uint8_t own = c->rows.own_exp[row];
    /* A forged result may accept a row that this worker did not encode: that leaves 0, too. */
    if (!c->request.remainder || c->rows.needs_reencode[row] || own == NF_NOT_FINITE) return;
    nf_row_remainder(codec, c->request.remainder + at, count, call_input_row(c, row), own, range, &rotation);
}
