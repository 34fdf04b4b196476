/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A binary min-heap of numbered items by time. Each item is in it at most once, and its time can be changed in place.
 * Items of equal time are ordered by number. */
#ifndef SF_HEAP_H
#define SF_HEAP_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

struct sf_heap {
    double *time;           /* of each item */
    int32_t *order, *place; /* items by place; place of each item, -1: not in the heap */
    int32_t count;
};

static inline int sf_heap_open(struct sf_heap *h, int64_t items) {
    h->time = calloc((size_t)items + 1, sizeof *h->time);
    h->order = calloc((size_t)items + 1, sizeof *h->order);
    h->place = calloc((size_t)items + 1, sizeof *h->place);
    h->count = 0;
    if (!h->time || !h->order || !h->place) return -1;
    for (int64_t i = 0; i < items; i++) h->place[i] = -1;
    return 0;
}

static inline void sf_heap_close(struct sf_heap *h) {
    free(h->time);
    free(h->order);
    free(h->place);
}

static inline int sf_heap_precedes(const struct sf_heap *h, int32_t a, int32_t b) {
    return h->time[a] != h->time[b] ? h->time[a] < h->time[b] : a < b;
}

static inline void sf_heap_put(struct sf_heap *h, int32_t at, int32_t item) {
    h->order[at] = item;
    h->place[item] = at;
}

static inline void sf_heap_sift(struct sf_heap *h, int32_t at) {
    int32_t item = h->order[at];
    while (at > 0 && sf_heap_precedes(h, item, h->order[(at - 1) / 2])) {
        sf_heap_put(h, at, h->order[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (int32_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && sf_heap_precedes(h, h->order[child + 1], h->order[child])) child++;
        if (!sf_heap_precedes(h, h->order[child], item)) break;
        sf_heap_put(h, at, h->order[child]);
    }
    sf_heap_put(h, at, item);
}

static inline void sf_heap_set(struct sf_heap *h, int32_t item, double time) {
    h->time[item] = time;
    if (h->place[item] < 0) sf_heap_put(h, h->count++, item);
    sf_heap_sift(h, h->place[item]);
}

static inline void sf_heap_remove(struct sf_heap *h, int32_t item) {
    int32_t at = h->place[item];
    if (at < 0) return;
    h->place[item] = -1;
    if (at != --h->count) {
        sf_heap_put(h, at, h->order[h->count]);
        sf_heap_sift(h, at);
    }
}

/* Returns the earliest time; INFINITY if the heap is empty. */
static inline double sf_heap_first_time(const struct sf_heap *h) { return h->count ? h->time[h->order[0]] : INFINITY; }

#endif
