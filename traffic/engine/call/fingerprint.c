/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "fingerprint.h"

#include "../wire/call_numbers.h"

/* splitmix64 */
static uint64_t mix(uint64_t hash, uint64_t number) {
    hash = (hash ^ number) + 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 27) * 0x94D049BB133111EBu;
    return hash ^ hash >> 31;
}

uint64_t fingerprint_profile(const struct nf_call *c) {
    const struct nf_request *r = &c->request;
    const int64_t parts[] = {r->elements, r->dtype, r->op, r->scheme, r->bits, r->context};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = mix(hash, (uint64_t)parts[i]);
    return hash;
}

/* A newcomer may have another number for the call: equal modulo CALL_MODULUS. */
void fingerprint_compute(struct nf_call *c) {
    int64_t number = c->attempt.has_newcomers ? c->outcome.number % CALL_MODULUS : c->outcome.number;
    c->attempt.fingerprint = mix(fingerprint_profile(c), (uint64_t)number);
}

void fingerprint_add_division(struct nf_call *c) {
    struct call_attempt *a = &c->attempt;
    if (a->balance) a->fingerprint = mix(a->fingerprint, (uint64_t)a->balance->stripes);
    for (int64_t i = 0; a->has_predicted_scales && i < a->tree_count; i++) {
        int64_t first = call_run(c, i, 0).first, count = call_first_rows(c, i);
        for (int64_t row = first; row < first + count; row++) a->fingerprint = mix(a->fingerprint, c->rows.agreed_exp[row]);
    }
}
