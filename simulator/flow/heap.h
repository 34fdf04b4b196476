/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A heap of numbered things by time, each in it once at most, and its time changed in place. Equal times by number. */
#ifndef NF_HEAP_H
#define NF_HEAP_H

#include <stdint.h>
#include <stdlib.h>

struct nf_heap {
    double *time;         /* of each thing */
    int32_t *order, *place; /* things by place; place of each thing, -1 outside */
    int32_t count;
};

static inline int nf_heap_open(struct nf_heap *h, int64_t things) {
    h->time = calloc((size_t)things + 1, sizeof *h->time);
    h->order = calloc((size_t)things + 1, sizeof *h->order);
    h->place = calloc((size_t)things + 1, sizeof *h->place);
    h->count = 0;
    if (!h->time || !h->order || !h->place)
        return -1;
    for (int64_t i = 0; i < things; i++)
        h->place[i] = -1;
    return 0;
}

static inline void nf_heap_close(struct nf_heap *h) {
    free(h->time);
    free(h->order);
    free(h->place);
}

static inline int nf_heap_before(const struct nf_heap *h, int32_t a, int32_t b) {
    return h->time[a] != h->time[b] ? h->time[a] < h->time[b] : a < b;
}

static inline void nf_heap_put(struct nf_heap *h, int32_t at, int32_t thing) {
    h->order[at] = thing;
    h->place[thing] = at;
}

static inline void nf_heap_move(struct nf_heap *h, int32_t at) {
    int32_t thing = h->order[at];
    while (at > 0 && nf_heap_before(h, thing, h->order[(at - 1) / 2])) {
        nf_heap_put(h, at, h->order[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (int32_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && nf_heap_before(h, h->order[child + 1], h->order[child]))
            child++;
        if (!nf_heap_before(h, h->order[child], thing))
            break;
        nf_heap_put(h, at, h->order[child]);
    }
    nf_heap_put(h, at, thing);
}

static inline void nf_heap_set(struct nf_heap *h, int32_t thing, double time) {
    h->time[thing] = time;
    if (h->place[thing] < 0)
        nf_heap_put(h, h->count++, thing);
    nf_heap_move(h, h->place[thing]);
}

static inline void nf_heap_drop(struct nf_heap *h, int32_t thing) {
    int32_t at = h->place[thing];
    if (at < 0)
        return;
    h->place[thing] = -1;
    if (at != --h->count) {
        nf_heap_put(h, at, h->order[h->count]);
        nf_heap_move(h, at);
    }
}

#endif
