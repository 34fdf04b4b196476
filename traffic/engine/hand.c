/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "hand.h"

#include <string.h>

#include "kind.h"

void hand_begin(struct nf_call *c, const struct nf_assignment *a, int64_t strangers, int64_t holders, int holding) {
    c->workers = a->workers;
    c->callers = a->workers - strangers;
    c->quorum = a->quorum;
    c->newcomers = takes_newcomers(a);
    c->holders = holders;
    c->holding = holding;
    c->opened = 0;
    c->wrong = NF_PENDING;
    kind_sign(c);
    c->verdict[0] = c->result;
    c->verdict[1] = c->outcome.index;
    c->verdict[2] = c->outcome.total;
    c->verdict[3] = c->outcome.total_high;
}

void hand_end(struct nf_call *c) {
    c->result = c->verdict[0];
    c->outcome.index = c->verdict[1];
    c->outcome.total = c->verdict[2];
    c->outcome.total_high = c->verdict[3];
}

static int64_t units_of(const struct nf_call *c) { return call_bytes(c) / 2 + (int64_t)sizeof c->verdict / 2; }

static uint8_t *unit_at(const struct nf_call *c, uint8_t *array, int64_t unit) {
    int64_t rest = unit - call_bytes(c) / 2;
    return rest < 0 ? array + 2 * unit : (uint8_t *)c->verdict + 2 * rest;
}

int64_t hand_chunks(const struct nf_call *c, const struct tree *t) { return (units_of(c) + t->lanes - 1) / t->lanes; }

static int64_t count_in(const struct nf_call *c, const struct tree *t, int64_t chunk) {
    int64_t rest = units_of(c) - chunk * t->lanes;
    return rest < t->lanes ? rest : t->lanes;
}

void hand_fill(const struct nf_call *c, const struct tree *t, int64_t chunk, struct header *h) {
    if (!c->holding) return;
    for (int64_t i = 0; i < count_in(c, t, chunk); i++) {
        uint16_t unit;
        memcpy(&unit, unit_at(c, c->input, chunk * t->lanes + i), sizeof unit);
        lanes_of(h)[i] = __builtin_bswap32(unit);
    }
}

void hand_take(const struct nf_call *c, const struct tree *t, int64_t chunk, struct header *h) {
    if (c->holding) return;
    for (int64_t i = 0; i < count_in(c, t, chunk); i++) {
        uint16_t unit = (uint16_t)((int64_t)__builtin_bswap32(lanes_of(h)[i]) / c->holders);
        memcpy(unit_at(c, c->request.array, chunk * t->lanes + i), &unit, sizeof unit);
    }
}
