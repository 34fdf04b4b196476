/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "kind.h"

#include <string.h>

/* Three rounds of splitmix64. */
static uint64_t mix(uint64_t hash, uint64_t number) {
    hash = (hash ^ number) + 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 27) * 0x94D049BB133111EBu;
    return hash ^ hash >> 31;
}

static uint64_t kind_of(const struct nf_call *c) {
    const struct nf_request *r = &c->request;
    const int64_t parts[] = {r->elements, r->dtype, r->op, r->scheme, r->bits};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = mix(hash, (uint64_t)parts[i]);
    return hash;
}

void kind_sign(struct nf_call *c) {
    int64_t number = c->outcome.number;
    c->print = mix(kind_of(c), (uint64_t)(c->newcomers ? number % NUMBERS : number)); /* who came later counts from elsewhere */
}

static int64_t all_first_rows(const struct nf_call *c, const struct tree *trees) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->tree_count; i++) count += call_first_rows(c, &trees[i]);
    return count;
}

void kind_predict(struct nf_call *c, struct nf_predictions *p, const struct tree *trees) {
    memset(c->seen, 0, (size_t)c->rows);
    kind_sign(c);
    if (c->balance) c->print = mix(c->print, (uint64_t)c->balance->laps); /* rows of who divides otherwise are not the same */
    if (!predicts(c)) return;
    c->turn = nf_predictions_turn(p, kind_of(c), all_first_rows(c, trees), c->outcome.number);
    const uint8_t *known = nf_predictions_find(p, kind_of(c), c->turn);
    if (!known) return;
    c->predicted = 1;
    for (int64_t i = 0; i < c->tree_count; i++)
        for (int64_t row = call_run(c, i, 0).first, n = call_first_rows(c, &trees[i]); n > 0; n--, row++, known++) {
            c->seen[row] = *known;
            c->agreed[row] = nf_predicted(kind_tolerance(c), *known);
            c->print = mix(c->print, c->agreed[row]); /* workers that predict otherwise are not in the same call */
        }
}

void kind_learn(const struct nf_call *c, struct nf_predictions *p, const struct tree *trees) {
    if (!predicts(c) || c->turn < 0) return;
    uint8_t *to = nf_predictions_room(p, kind_of(c), all_first_rows(c, trees), c->turn);
    if (!to) return;
    for (int64_t i = 0; i < c->tree_count; i++) {
        int64_t count = call_first_rows(c, &trees[i]);
        memcpy(to, c->seen + call_run(c, i, 0).first, (size_t)count);
        to += count;
    }
    nf_predictions_learn(p, kind_of(c), c->turn, kind_tolerance(c));
}
