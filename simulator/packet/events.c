/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "events.h"

#include <stdlib.h>

enum { CHILDREN = 4, INITIAL_CAPACITY = 1024 };

static int is_earlier(const struct np_event *a, const struct np_event *b) {
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void sift_down(struct np_events *e, struct np_event moved) {
    int64_t at = 0;
    for (;;) {
        int64_t first = CHILDREN * at + 1, best = first;
        if (first >= e->count) break;
        int64_t stop = first + CHILDREN < e->count ? first + CHILDREN : e->count;
        for (int64_t i = first + 1; i < stop; i++)
            if (is_earlier(&e->heap[i], &e->heap[best])) best = i;
        if (!is_earlier(&e->heap[best], &moved)) break;
        e->heap[at] = e->heap[best];
        at = best;
    }
    e->heap[at] = moved;
}

int np_events_put(struct np_events *e, np_time at, enum np_event_type what, uint32_t owner_id) {
    if (e->count == e->capacity) {
        int64_t capacity = e->capacity ? 2 * e->capacity : INITIAL_CAPACITY;
        struct np_event *heap = realloc(e->heap, (size_t)capacity * sizeof *heap);
        if (!heap) return -1;
        e->heap = heap;
        e->capacity = capacity;
    }
    struct np_event put = {at, e->order++, (uint32_t)what << NP_OWNER_BITS | owner_id};
    int64_t i = e->count++;
    while (i && is_earlier(&put, &e->heap[(i - 1) / CHILDREN])) {
        e->heap[i] = e->heap[(i - 1) / CHILDREN];
        i = (i - 1) / CHILDREN;
    }
    e->heap[i] = put;
    return 0;
}

void np_events_pop(struct np_events *e) {
    struct np_event last = e->heap[--e->count];
    if (e->count) sift_down(e, last);
}

void np_events_postpone_first(struct np_events *e, np_time at) {
    struct np_event first = e->heap[0];
    first.at = at;
    first.order = e->order++;
    sift_down(e, first);
}

void np_timer_clear(struct np_timer *t) { t->due = t->queued = NP_NEVER; }

int np_timer_set(struct np_events *e, struct np_timer *t, np_time due, enum np_event_type what, uint32_t owner_id) {
    t->due = due;
    if (due >= t->queued) return 0;
    t->queued = due;
    return np_events_put(e, due, what, owner_id);
}

int np_timer_fires(struct np_events *e, struct np_timer *t, np_time now, enum np_event_type what, uint32_t owner_id) {
    if (now != t->queued) return 0; /* an earlier event was added since */
    t->queued = NP_NEVER;
    if (t->due <= now) return 1;
    return np_timer_set(e, t, t->due, what, owner_id);
}
