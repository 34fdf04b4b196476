/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A binary min-heap of numbers in an array that is large enough for all. */

#ifndef NETFOLD_HEAP_H
#define NETFOLD_HEAP_H

#include <stdint.h>

static inline void heap_push(int64_t *heap, int64_t *count, int64_t number) {
    int64_t at = (*count)++;
    while (at && heap[(at - 1) / 2] > number) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = number;
}

static inline void heap_pop(int64_t *heap, int64_t *count) {
    int64_t last = heap[--*count], at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= *count) break;
        if (child + 1 < *count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
}

/* Removes a number from any place; returns whether it was found. */
static inline int heap_remove(int64_t *heap, int64_t *count, int64_t number) {
    int64_t at = 0;
    while (at < *count && heap[at] != number) at++;
    if (at == *count) return 0;
    for (; at; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2]; /* ancestors move down, the number becomes the root */
    heap_pop(heap, count);
    return 1;
}

#endif
