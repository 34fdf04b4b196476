/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "handover.h"

#include "../call/fingerprint.h"

void handover_prepare(struct nf_call *c, const struct nf_assignment *a, int64_t contributors, int64_t holders, int is_holder) {
    c->attempt.workers = a->workers;
    c->attempt.contributors = contributors;
    c->attempt.quorum = a->quorum;
    c->attempt.has_newcomers = has_newcomers(a);
    c->attempt.is_opened = 0;
    c->attempt.error = NF_PENDING;
    fingerprint_compute(c);
    const struct nf_outcome *o = &c->outcome;
    c->handover = (struct call_handover){
        .holders = holders, .is_holder = is_holder, .verdict = {c->result, o->index, o->total, o->total_high}};
}

void handover_finish(struct nf_call *c) {
    c->result = c->handover.verdict[0];
    c->outcome.index = c->handover.verdict[1];
    c->outcome.total = c->handover.verdict[2];
    c->outcome.total_high = c->handover.verdict[3];
}

static int64_t unit_count(const struct nf_call *c) { return call_bytes(c) / 2 + (int64_t)sizeof c->handover.verdict / 2; }

/* Returns a unit of 16 bits of the array, or of the verdict behind it. */
static uint8_t *unit_at(const struct nf_call *c, uint8_t *array, int64_t unit) {
    int64_t rest = unit - call_bytes(c) / 2;
    return rest < 0 ? array + 2 * unit : (uint8_t *)c->handover.verdict + 2 * rest;
}

int64_t handover_chunks(const struct nf_call *c, int64_t lanes) { return (unit_count(c) + lanes - 1) / lanes; }

static int64_t plan(struct nf_call *c, const struct tree *t) { return t->index == 0 ? handover_chunks(c, t->lanes) : 0; }

static int64_t units_of_chunk(const struct nf_call *c, const struct tree *t, int64_t chunk) {
    int64_t rest = unit_count(c) - chunk * t->lanes;
    return rest < t->lanes ? rest : t->lanes;
}

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    const struct nf_call *c = s->owner;
    clear_lanes(t, h);
    if (!c->handover.is_holder) return;
    for (int64_t i = 0; i < units_of_chunk(c, t, chunk); i++) {
        uint16_t unit;
        memcpy(&unit, unit_at(c, c->rows.input, chunk * t->lanes + i), sizeof unit);
        lanes_of(h)[i] = __builtin_bswap32(unit);
    }
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    const struct nf_call *c = s->owner;
    (void)now;
    if (c->handover.is_holder) return NF_PENDING;
    for (int64_t i = 0; i < units_of_chunk(c, t, chunk); i++) {
        uint16_t unit = (uint16_t)((int64_t)__builtin_bswap32(lanes_of(h)[i]) / c->handover.holders);
        memcpy(unit_at(c, c->request.array, chunk * t->lanes + i), &unit, sizeof unit);
    }
    return NF_PENDING;
}

const struct call_part handover_part = {{MAIN, 0, fill, take}, plan};

static void fill_nothing(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    (void)s, (void)chunk;
    clear_lanes(t, h);
    h->reserved = 0; /* no contribution */
}

static int64_t ignore(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    (void)t, (void)s, (void)chunk, (void)h, (void)now;
    return NF_PENDING;
}

const struct part_ops pass_through_ops = {MAIN, 0, fill_nothing, ignore};
