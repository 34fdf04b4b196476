/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "predict.h"

#include <stdlib.h>

enum { UNITS = 64 }; /* of one byte in `wrong` */

void nf_predictions_forget(struct nf_predictions *p) {
    for (int64_t i = 0; i < p->count; i++) free(p->kinds[i].bytes);
    p->count = 0;
}

static struct nf_kind *find(const struct nf_predictions *p, uint64_t key) {
    for (int64_t i = 0; i < p->count; i++)
        if (p->kinds[i].key == key) return (struct nf_kind *)&p->kinds[i];
    return NULL;
}

static struct nf_kind *room_for(struct nf_predictions *p) {
    if (p->count < NF_KINDS_MAX) return &p->kinds[p->count++];
    struct nf_kind *oldest = &p->kinds[0];
    for (int64_t i = 1; i < p->count; i++)
        if (p->kinds[i].used_in < oldest->used_in) oldest = &p->kinds[i];
    free(oldest->bytes);
    return oldest;
}

int64_t nf_predictions_turn(struct nf_predictions *p, uint64_t key, int64_t count, int64_t number) {
    struct nf_kind *k = find(p, key);
    if (!k) {
        k = room_for(p);
        *k = (struct nf_kind){.key = key, .count = count};
        for (int i = 0; i < NF_TURNS_MAX; i++) k->wrong[i] = UNITS * count;
    }
    if (!k->bytes) k->bytes = malloc((size_t)(NF_TURNS_MAX * count));
    if (!k->bytes) return -1;
    k->used_in = number;
    return k->turns++;
}

/* What was seen so many turns before; NULL: that is not known. */
static uint8_t *seen_before(const struct nf_kind *k, int64_t turn, int64_t distance) {
    int64_t then = turn - distance;
    return then >= 0 && k->learned[then % NF_TURNS_MAX] == then + 1 ? k->bytes + then % NF_TURNS_MAX * k->count : NULL;
}

const uint8_t *nf_predictions_find(const struct nf_predictions *p, uint64_t key, int64_t turn) {
    const struct nf_kind *k = find(p, key);
    const uint8_t *best = NULL;
    int64_t least = INT64_MAX;
    for (int64_t distance = 1; k && distance <= NF_TURNS_MAX; distance++) {
        const uint8_t *bytes = seen_before(k, turn, distance);
        if (!bytes || k->wrong[distance - 1] >= least) continue;
        best = bytes;
        least = k->wrong[distance - 1];
    }
    return best;
}

uint8_t *nf_predictions_room(struct nf_predictions *p, uint64_t key, int64_t count, int64_t turn) {
    struct nf_kind *k = find(p, key);
    return k && k->bytes && k->count == count ? k->bytes + turn % NF_TURNS_MAX * count : NULL;
}

void nf_predictions_learn(struct nf_predictions *p, uint64_t key, int64_t turn, struct nf_tolerance tolerance) {
    struct nf_kind *k = find(p, key);
    k->learned[turn % NF_TURNS_MAX] = turn + 1;
    const uint8_t *now = seen_before(k, turn, 0);
    for (int64_t distance = 1; distance < NF_TURNS_MAX; distance++) {
        const uint8_t *then = seen_before(k, turn, distance);
        int64_t wrong = 0;
        for (int64_t i = 0; then && i < k->count; i++) {
            uint8_t byte = nf_predicted(tolerance, then[i]);
            wrong += now[i] > byte || nf_mispredicted(tolerance, byte, now[i]);
        }
        if (then) k->wrong[distance - 1] = (k->wrong[distance - 1] + UNITS * wrong) / 2;
    }
}
