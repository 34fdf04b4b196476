/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "scales.h"

#include <string.h>

#include "fingerprint.h"

static int64_t all_first_rows(const struct nf_call *c) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->attempt.tree_count; i++) count += call_first_rows(c, i);
    return count;
}

void scales_predict(struct nf_call *c, struct nf_scale_predictor *p) {
    struct call_rows *rows = &c->rows;
    memset(rows->observed_exp, 0, (size_t)rows->count);
    if (!predicts_scales(c)) return;
    uint64_t profile = fingerprint_profile(c);
    c->attempt.occurrence = nf_predictor_next_occurrence(p, profile, all_first_rows(c), c->outcome.number);
    const uint8_t *predicted = nf_predictor_predict(p, profile, c->attempt.occurrence);
    if (!predicted) return;
    c->attempt.has_predicted_scales = 1;
    for (int64_t i = 0; i < c->attempt.tree_count; i++) {
        int64_t first = call_run(c, i, 0).first, count = call_first_rows(c, i);
        for (int64_t row = first; row < first + count; row++, predicted++) {
            rows->observed_exp[row] = *predicted;
            rows->agreed_exp[row] = nf_predicted_exp(scales_tolerance(c), *predicted);
        }
    }
}

void scales_learn(const struct nf_call *c, struct nf_scale_predictor *p) {
    int64_t occurrence = c->attempt.occurrence;
    if (!predicts_scales(c) || occurrence < 0) return;
    uint64_t profile = fingerprint_profile(c);
    uint8_t *to = nf_predictor_buffer(p, profile, all_first_rows(c), occurrence);
    if (!to) return;
    for (int64_t i = 0; i < c->attempt.tree_count; i++) {
        int64_t count = call_first_rows(c, i);
        memcpy(to, c->rows.observed_exp + call_run(c, i, 0).first, (size_t)count);
        to += count;
    }
    nf_predictor_learn(p, profile, occurrence, scales_tolerance(c));
}
