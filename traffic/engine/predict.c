/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "predict.h"

#include <stdlib.h>

void nf_predictions_forget(struct nf_predictions *p) {
    for (int64_t i = 0; i < p->count; i++) free(p->kinds[i].bytes);
    p->count = 0;
}

static struct nf_kind *find(const struct nf_predictions *p, uint64_t key) {
    for (int64_t i = 0; i < p->count; i++)
        if (p->kinds[i].key == key) return (struct nf_kind *)&p->kinds[i];
    return NULL;
}

const uint8_t *nf_predictions_find(const struct nf_predictions *p, uint64_t key, int64_t count) {
    const struct nf_kind *k = find(p, key);
    return k && k->count == count ? k->bytes : NULL;
}

static struct nf_kind *room_for(struct nf_predictions *p) {
    if (p->count < NF_KINDS_MAX) {
        p->kinds[p->count] = (struct nf_kind){0};
        return &p->kinds[p->count++];
    }
    struct nf_kind *oldest = &p->kinds[0];
    for (int64_t i = 1; i < p->count; i++)
        if (p->kinds[i].learned_in < oldest->learned_in) oldest = &p->kinds[i];
    return oldest;
}

uint8_t *nf_predictions_learn(struct nf_predictions *p, uint64_t key, int64_t count, int64_t number) {
    struct nf_kind *k = find(p, key);
    if (!k) k = room_for(p);
    if (!k->bytes || k->count != count) {
        free(k->bytes);
        k->bytes = malloc((size_t)count);
    }
    k->key = key;
    k->learned_in = number;
    k->count = k->bytes ? count : 0;
    return k->bytes;
}
