/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "fingerprint.h"

#include "../numerics/mix.h"
#include "../wire/call_numbers.h"

uint64_t fingerprint_profile(const struct nf_call *c) {
    const struct nf_request *r = &c->request;
    const int64_t parts[] = {r->elements, r->dtype, r->op, r->scheme, r->bits, r->context};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = nf_mix(hash, (uint64_t)parts[i]);
    if (r->form) hash = nf_mix(hash, (uint64_t)r->form);
    for (int64_t i = 0; i < r->block_count; i++)
        hash = nf_mix(nf_mix(hash, (uint64_t)c->blocks[i].elements), (uint64_t)c->blocks[i].owner);
    return hash;
}

/* A newcomer may have another number for the call, equal modulo CALL_MODULUS. */
void fingerprint_compute(struct nf_call *c) {
    int64_t number = c->attempt.has_newcomers ? c->outcome.number % CALL_MODULUS : c->outcome.number;
    c->attempt.fingerprint = nf_mix(fingerprint_profile(c), (uint64_t)number);
}

void fingerprint_add_division(struct nf_call *c) {
    struct call_attempt *a = &c->attempt;
    if (a->balance) a->fingerprint = nf_mix(a->fingerprint, (uint64_t)a->balance->stripes);
    /* The numbers of calls are few then (fingerprint_compute), and each call needs dithers of its own. */
    if (is_rotated(c) && a->has_newcomers) a->fingerprint = nf_mix(a->fingerprint, (uint64_t)c->ranges.occurrence);
    for (int64_t row = 0; is_rotated(c) && row < c->ranges.count; row++)
        a->fingerprint = nf_mix(a->fingerprint, c->ranges.predicted[row]);
    for (int64_t i = 0; a->has_predicted_scales && i < a->tree_count; i++) {
        int64_t first = call_run(c, i, 0).first, count = call_first_rows(c, i);
        for (int64_t row = first; row < first + count; row++) a->fingerprint = nf_mix(a->fingerprint, c->rows.agreed_exp[row]);
    }
}
