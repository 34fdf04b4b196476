/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "scale_predictor.h"

#include <stdlib.h>

enum { UNITS = 64 }; /* one missed byte in `miss_score` */

void nf_predictor_clear(struct nf_scale_predictor *p) {
    for (int64_t i = 0; i < p->count; i++) free(p->profiles[i].bytes);
    p->count = 0;
}

static struct nf_call_profile *find(const struct nf_scale_predictor *p, uint64_t key) {
    for (int64_t i = 0; i < p->count; i++)
        if (p->profiles[i].key == key) return (struct nf_call_profile *)&p->profiles[i];
    return NULL;
}

static struct nf_call_profile *allocate_profile(struct nf_scale_predictor *p) {
    if (p->count < NF_MAX_PROFILES) return &p->profiles[p->count++];
    struct nf_call_profile *oldest = &p->profiles[0];
    for (int64_t i = 1; i < p->count; i++)
        if (p->profiles[i].used_in < oldest->used_in) oldest = &p->profiles[i];
    free(oldest->bytes);
    return oldest;
}

int64_t nf_predictor_next_occurrence(struct nf_scale_predictor *p, uint64_t key, int64_t count, int64_t number) {
    struct nf_call_profile *k = find(p, key);
    if (!k) {
        k = allocate_profile(p);
        *k = (struct nf_call_profile){.key = key, .count = count};
        for (int i = 0; i < NF_MAX_HISTORY; i++) k->miss_score[i] = UNITS * count;
    }
    if (!k->bytes) k->bytes = malloc((size_t)(NF_MAX_HISTORY * count));
    if (!k->bytes) return -1;
    k->used_in = number;
    return k->occurrences++;
}

/* Returns the bytes that were observed `distance` occurrences before, or NULL if they are unknown. */
static uint8_t *observed_before(const struct nf_call_profile *k, int64_t occurrence, int64_t distance) {
    int64_t then = occurrence - distance;
    return then >= 0 && k->learned[then % NF_MAX_HISTORY] == then + 1 ? k->bytes + then % NF_MAX_HISTORY * k->count : NULL;
}

const uint8_t *nf_predictor_predict(const struct nf_scale_predictor *p, uint64_t key, int64_t occurrence) {
    const struct nf_call_profile *k = find(p, key);
    const uint8_t *best = NULL;
    int64_t min_score = INT64_MAX;
    for (int64_t distance = 1; k && distance <= NF_MAX_HISTORY; distance++) {
        const uint8_t *bytes = observed_before(k, occurrence, distance);
        if (!bytes || k->miss_score[distance - 1] >= min_score) continue;
        best = bytes;
        min_score = k->miss_score[distance - 1];
    }
    return best;
}

uint8_t *nf_predictor_buffer(struct nf_scale_predictor *p, uint64_t key, int64_t count, int64_t occurrence) {
    struct nf_call_profile *k = find(p, key);
    return k && k->bytes && k->count == count ? k->bytes + occurrence % NF_MAX_HISTORY * count : NULL;
}

void nf_predictor_learn(struct nf_scale_predictor *p, uint64_t key, int64_t occurrence, struct nf_tolerance tolerance) {
    struct nf_call_profile *k = find(p, key);
    k->learned[occurrence % NF_MAX_HISTORY] = occurrence + 1;
    const uint8_t *now = observed_before(k, occurrence, 0);
    for (int64_t distance = 1; distance < NF_MAX_HISTORY; distance++) {
        const uint8_t *then = observed_before(k, occurrence, distance);
        int64_t misses = 0;
        for (int64_t i = 0; then && i < k->count; i++) {
            uint8_t byte = nf_predicted_exp(tolerance, then[i]);
            misses += now[i] > byte || nf_is_mispredicted(tolerance, byte, now[i]);
        }
        if (then) k->miss_score[distance - 1] = (k->miss_score[distance - 1] + UNITS * misses) / 2;
    }
}
