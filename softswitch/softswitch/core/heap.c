/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Binary heaps of table entries, by handle. */
#include "internal.h"

static int first(const struct ss_entry *a, const struct ss_entry *b, enum ss_order by) {
    return by == SS_BY_PRIORITY ? a->priority > b->priority : a->due_ns < b->due_ns;
}

static void put(struct ss_heap *h, struct ss_entry **entries, uint32_t at, uint32_t handle, enum ss_order by) {
    h->handles[at] = handle;
    entries[handle]->heap_index[by] = at;
}

/* Restores the heap order at `at`. */
static void settle(struct ss_heap *h, struct ss_entry **entries, uint32_t at, enum ss_order by) {
    uint32_t handle = h->handles[at];
    const struct ss_entry *e = entries[handle];
    for (; at && first(e, entries[h->handles[(at - 1) / 2]], by); at = (at - 1) / 2)
        put(h, entries, at, h->handles[(at - 1) / 2], by);
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && first(entries[h->handles[child + 1]], entries[h->handles[child]], by)) child++;
        if (!first(entries[h->handles[child]], e, by)) break;
        put(h, entries, at, h->handles[child], by);
        at = child;
    }
    put(h, entries, at, handle, by);
}

int ss_heap_add(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by) {
    if (h->count == h->capacity) {
        uint32_t capacity = h->capacity ? h->capacity * 2 : 16;
        uint32_t *handles = realloc(h->handles, capacity * sizeof *handles);
        if (!handles) return SS_E_MEMORY;
        h->handles = handles;
        h->capacity = capacity;
    }
    put(h, entries, h->count, handle, by);
    settle(h, entries, h->count++, by);
    return SS_OK;
}

void ss_heap_remove(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by) {
    uint32_t at = entries[handle]->heap_index[by];
    uint32_t last = h->handles[--h->count];
    if (at == h->count) return;
    put(h, entries, at, last, by);
    settle(h, entries, at, by);
}

void ss_heap_move(struct ss_heap *h, struct ss_entry **entries, uint32_t handle, enum ss_order by) {
    settle(h, entries, entries[handle]->heap_index[by], by);
}
