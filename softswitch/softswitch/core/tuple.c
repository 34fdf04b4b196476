/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tables as tuple spaces (Srinivasan, Suri, Varghese, SIGCOMM 1999): one hash for each distinct mask, tried in the order of
 * the best priority inside. An exact table has one tuple; a longest-prefix table one for each prefix length in use, with
 * the length as the priority. The lookup itself is ss_lookup in runtime/program.h. */
#include "internal.h"

static uint32_t find_slot(const struct ss_table *t, const struct ss_tuple *tu, const uint64_t *key, int *found) {
    uint32_t at = (uint32_t)ss_mix(key, t->words) & (tu->capacity - 1);
    for (;; at = (at + 1) & (tu->capacity - 1)) {
        if (tu->slots[at] == SS_NONE) {
            *found = 0;
            return at;
        }
        if (memcmp(tu->keys + (uint64_t)at * t->words, key, t->words * 8) == 0) {
            *found = 1;
            return at;
        }
    }
}

static int tuple_alloc(struct ss_tuple *tu, uint32_t capacity, uint32_t words) {
    uint32_t *slots = malloc((uint64_t)capacity * sizeof *slots);
    uint64_t *keys = malloc((uint64_t)capacity * (words ? words : 1) * 8);
    if (!slots || !keys) {
        free(slots);
        free(keys);
        return SS_E_MEMORY;
    }
    memset(slots, 0xff, (uint64_t)capacity * sizeof *slots);
    tu->slots = slots;
    tu->keys = keys;
    tu->capacity = capacity;
    return SS_OK;
}

static int grow(const struct ss_table *t, struct ss_tuple *tu) {
    struct ss_tuple old = *tu;
    if (tuple_alloc(tu, old.capacity * 2, t->words) != SS_OK) {
        *tu = old;
        return SS_E_MEMORY;
    }
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i] == SS_NONE) continue;
        const uint64_t *key = old.keys + (uint64_t)i * t->words;
        int found;
        uint32_t at = find_slot(t, tu, key, &found);
        tu->slots[at] = old.slots[i];
        memcpy(tu->keys + (uint64_t)at * t->words, key, t->words * 8);
    }
    free(old.slots);
    free(old.keys);
    return SS_OK;
}

/* Returns the tuple of a mask, created if missing. `sort` restores the order. */
static struct ss_tuple *tuple_for(struct ss_table *t, const uint64_t *mask) {
    for (uint32_t i = 0; i < t->n_tuples; i++)
        if (memcmp(t->tuples[i].mask, mask, t->words * 8) == 0) return &t->tuples[i];
    struct ss_tuple *tuples = realloc(t->tuples, (t->n_tuples + 1) * sizeof *tuples);
    if (!tuples) return NULL;
    t->tuples = tuples;
    struct ss_tuple *tu = &tuples[t->n_tuples];
    memset(tu, 0, sizeof *tu);
    tu->best = INT64_MIN; /* no entry */
    tu->mask = malloc(t->words ? t->words * 8 : 8);
    if (!tu->mask || tuple_alloc(tu, 16, t->words) != SS_OK) {
        free(tu->mask);
        return NULL;
    }
    memcpy(tu->mask, mask, t->words * 8);
    t->n_tuples++;
    return tu;
}

static void sort(struct ss_table *t) {
    for (uint32_t i = 1; i < t->n_tuples; i++) {
        struct ss_tuple tu = t->tuples[i];
        uint32_t j = i;
        for (; j > 0 && t->tuples[j - 1].best < tu.best; j--) t->tuples[j] = t->tuples[j - 1];
        t->tuples[j] = tu;
    }
}

static int before(const struct ss_entry *a, const struct ss_entry *b) {
    return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
}

static void drop_tuple(struct ss_table *t, struct ss_tuple *tu) {
    free(tu->slots);
    free(tu->mask);
    free(tu->keys);
    free(tu->by_priority.handles);
    memmove(tu, tu + 1, (uint64_t)(t->tuples + t->n_tuples - (tu + 1)) * sizeof *tu);
    t->n_tuples--;
}

/* Updates the tuple's largest priority and the order of tuples. */
static void rank(struct ss_table *t, struct ss_tuple *tu) {
    int64_t best = t->entries[tu->by_priority.handles[0]]->priority;
    if (best == tu->best) return;
    tu->best = best;
    sort(t);
}

int ss_tuple_link(struct ss_table *t, struct ss_entry *e, uint32_t handle) {
    t->changes++;
    struct ss_tuple *tu = tuple_for(t, e->key + t->words);
    if (!tu) return SS_E_MEMORY;
    if ((tu->count * 2 >= tu->capacity && grow(t, tu) != SS_OK) ||
        ss_heap_add(&tu->by_priority, t->entries, handle, SS_BY_PRIORITY) != SS_OK) {
        if (tu->count == 0) drop_tuple(t, tu);
        return SS_E_MEMORY;
    }
    int found;
    uint32_t at = find_slot(t, tu, e->key, &found);
    if (!found) {
        tu->slots[at] = SS_NONE;
        memcpy(tu->keys + (uint64_t)at * t->words, e->key, t->words * 8);
        tu->count++;
    }
    if (t->ranges) {
        tu->slots[at] = ss_interval_insert(t, tu->slots[at], handle);
    } else {
        uint32_t *link = &tu->slots[at];
        while (*link != SS_NONE && before(t->entries[*link], e)) link = &t->entries[*link]->next;
        e->next = *link;
        *link = handle;
    }
    rank(t, tu);
    return SS_OK;
}

/* Removes a key from an open-addressed tuple and closes the gap. */
static void remove_slot(const struct ss_table *t, struct ss_tuple *tu, uint32_t at) {
    uint32_t m = tu->capacity - 1;
    tu->slots[at] = SS_NONE;
    tu->count--;
    for (uint32_t i = (at + 1) & m; tu->slots[i] != SS_NONE; i = (i + 1) & m) {
        const uint64_t *key = tu->keys + (uint64_t)i * t->words;
        uint32_t home = (uint32_t)ss_mix(key, t->words) & m;
        if (((i - home) & m) < ((i - at) & m)) continue;
        tu->slots[at] = tu->slots[i];
        memcpy(tu->keys + (uint64_t)at * t->words, key, t->words * 8);
        tu->slots[i] = SS_NONE;
        at = i;
    }
}

void ss_tuple_unlink(struct ss_table *t, struct ss_entry *e, uint32_t handle) {
    t->changes++;
    struct ss_tuple *tu = tuple_for(t, e->key + t->words);
    int found;
    uint32_t at = find_slot(t, tu, e->key, &found);
    if (t->ranges) {
        tu->slots[at] = ss_interval_remove(t, tu->slots[at], handle);
    } else {
        uint32_t *link = &tu->slots[at];
        while (*link != handle) link = &t->entries[*link]->next;
        *link = e->next;
    }
    if (tu->slots[at] == SS_NONE) remove_slot(t, tu, at);
    ss_heap_remove(&tu->by_priority, t->entries, handle, SS_BY_PRIORITY);
    if (tu->count == 0)
        drop_tuple(t, tu);
    else
        rank(t, tu);
}

void ss_tuples_free(struct ss_table *t) {
    while (t->n_tuples) drop_tuple(t, &t->tuples[t->n_tuples - 1]);
    free(t->tuples);
}
