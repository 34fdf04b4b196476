/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Table entries as set by the control plane. Lookup: tuple.c, interval.c; idle timeouts: age.c. */
#include "internal.h"

/* Allocates direct counters of the shards from 1 on. Returns NULL with one thread, or without memory. */
static struct ss_shard_counter *shard_counters(uint32_t threads) {
    void *made = NULL;
    uint64_t bytes = (threads - 1) * sizeof(struct ss_shard_counter);
    if (threads == 1 || posix_memalign(&made, _Alignof(struct ss_shard_counter), bytes) != 0) return NULL;
    return memset(made, 0, bytes);
}

int ss_table_init(struct ss_table *t, const struct ss_table_desc *d, struct ss_profile *profiles, uint32_t threads) {
    memset(t, 0, sizeof *t);
    t->default_entry.counters = shard_counters(threads);
    if (threads > 1 && !t->default_entry.counters) return SS_E_MEMORY;
    t->words = d->words;
    t->ranges = d->ranges;
    t->changes = 1;
    t->profile = d->profile >= 0 ? &profiles[d->profile] : NULL;
    t->default_entry.action = SS_NONE;
    return SS_OK;
}

void ss_entry_free(struct ss_entry *e) {
    if (!e) return;
    free((void *)e->data);
    free(e->interval);
    free(e->meter);
    free(e->counters);
    free(e);
}

void ss_table_free(struct ss_table *t) {
    for (uint32_t i = 0; i < t->n_entries; i++) ss_entry_free(t->entries[i]);
    ss_tuples_free(t);
    free(t->entries);
    free(t->free);
    free(t->by_due.handles);
    free((void *)t->default_entry.data);
    free(t->default_entry.meter);
    free(t->default_entry.counters);
}

/* Returns the slot that was free longest, so a late idle notification does not refer to a new entry. It stays in the ring. */
static uint32_t free_handle(struct ss_table *t) {
    if (t->count < t->n_entries) return t->free[t->free_at];
    uint32_t n = t->n_entries ? t->n_entries * 2 : 16;
    struct ss_entry **entries = realloc(t->entries, n * sizeof *entries);
    if (entries) t->entries = entries;
    uint32_t *ring = realloc(t->free, n * sizeof *ring);
    if (ring) t->free = ring;
    if (!entries || !ring) return SS_NONE;
    memset(entries + t->n_entries, 0, (n - t->n_entries) * sizeof *entries);
    for (uint32_t i = 0; t->n_entries + i < n; i++) ring[i] = t->n_entries + i;
    t->free_at = 0;
    t->n_entries = n;
    return ring[0];
}

static void take_handle(struct ss_table *t) {
    t->free_at = (t->free_at + 1) % t->n_entries;
    t->count++;
}

static void give_handle(struct ss_table *t, uint32_t handle) {
    t->free[(t->free_at + (t->n_entries - t->count)) % t->n_entries] = handle;
    t->count--;
}

static uint64_t *copy_words(const uint64_t *from, uint32_t words) {
    uint64_t *to = malloc(words ? words * 8 : 8);
    if (to && words) memcpy(to, from, words * 8);
    return to;
}

static struct ss_interval *interval_of(const uint64_t *range, uint32_t ranges, uint32_t order) {
    struct ss_interval *n = malloc(sizeof *n + ranges * 16);
    if (!n) return NULL;
    n->left = n->right = SS_NONE;
    n->rank = (uint32_t)ss_mix(&(uint64_t){order}, 1);
    memcpy(n->bounds, range, ranges * 16);
    return n;
}

int64_t ss_entry_add(struct ss_pipeline *pl, uint32_t table, const uint64_t *key, const uint64_t *mask, int64_t priority,
                     const uint64_t *range, const struct ss_action_spec *action, uint64_t timeout_ns) {
    if (table >= pl->program->n_tables) return SS_E_RANGE;
    struct ss_table *t = &pl->tables[table];
    static atomic_uint order;
    int64_t rc = SS_E_MEMORY;
    struct ss_entry *e = calloc(1, sizeof *e + (t->words ? t->words * 16 : 16));
    if (!e) return rc;
    for (uint32_t i = 0; i < t->words; i++) {
        e->key[i] = key[i] & mask[i];
        e->key[t->words + i] = mask[i];
    }
    e->priority = priority;
    e->order = atomic_fetch_add(&order, 1);
    e->kind = (uint8_t)action->kind;
    e->action = action->index;
    e->data = copy_words(action->data, action->words);
    if (t->ranges) e->interval = interval_of(range, t->ranges, e->order);
    if (e->interval) e->range = e->interval->bounds;
    e->counters = shard_counters(pl->threads);
    int complete = e->data && (e->range || !t->ranges) && (e->counters || pl->threads == 1);
    ss_pipeline_lock(pl);
    e->last_hit_ns = pl->owner ? pl->owner->last_ns : 0;
    uint32_t handle = complete ? free_handle(t) : SS_NONE;
    if (handle != SS_NONE) {
        t->entries[handle] = e;
        rc = ss_tuple_link(t, e, handle);
        if (rc == SS_OK && (rc = ss_age_set(pl, t, handle, timeout_ns)) != SS_OK) ss_tuple_unlink(t, e, handle);
        if (rc == SS_OK)
            take_handle(t);
        else
            t->entries[handle] = NULL;
    }
    ss_pipeline_unlock(pl);
    if (rc == SS_OK) return handle;
    ss_entry_free(e);
    return rc;
}

int ss_entry_set(struct ss_pipeline *pl, uint32_t table, uint32_t handle, const struct ss_action_spec *action,
                 uint64_t timeout_ns) {
    if (table >= pl->program->n_tables) return SS_E_RANGE;
    struct ss_table *t = &pl->tables[table];
    uint64_t *data = copy_words(action->data, action->words);
    if (!data) return SS_E_MEMORY;
    int rc = SS_E_RANGE;
    ss_pipeline_lock(pl);
    if (handle < t->n_entries && t->entries[handle]) {
        rc = ss_age_set(pl, t, handle, timeout_ns);
    }
    if (rc == SS_OK) {
        struct ss_entry *e = t->entries[handle];
        const uint64_t *old = e->data;
        e->kind = (uint8_t)action->kind;
        e->action = action->index;
        e->data = data;
        data = (uint64_t *)old;
    }
    ss_pipeline_unlock(pl);
    free(data);
    return rc;
}

int ss_entry_del(struct ss_pipeline *pl, uint32_t table, uint32_t handle) {
    if (table >= pl->program->n_tables) return SS_E_RANGE;
    struct ss_table *t = &pl->tables[table];
    struct ss_entry *e = NULL;
    ss_pipeline_lock(pl);
    if (handle < t->n_entries && t->entries[handle]) {
        e = t->entries[handle];
        (void)ss_age_set(pl, t, handle, 0);
        ss_tuple_unlink(t, e, handle);
        t->entries[handle] = NULL;
        give_handle(t, handle);
    }
    ss_pipeline_unlock(pl);
    int rc = e ? SS_OK : SS_E_RANGE;
    ss_entry_free(e);
    return rc;
}

int ss_default_set(struct ss_pipeline *pl, uint32_t table, const struct ss_action_spec *action) {
    if (table >= pl->program->n_tables) return SS_E_RANGE;
    struct ss_table *t = &pl->tables[table];
    uint64_t *data = action ? copy_words(action->data, action->words) : NULL;
    if (action && !data) return SS_E_MEMORY;
    ss_pipeline_lock(pl);
    const uint64_t *old = t->default_entry.data;
    t->default_entry.kind = action ? (uint8_t)action->kind : SS_ACTION;
    t->default_entry.action = action ? action->index : SS_NONE;
    t->default_entry.data = data;
    ss_pipeline_unlock(pl);
    free((void *)old);
    return SS_OK;
}

/* A written value counts for shard 0. */
static void access_counter(struct ss_entry *e, uint32_t more, struct ss_counter *io, int write) {
    if (write)
        e->counter = *io;
    else
        *io = e->counter;
    for (uint32_t i = 0; i < more; i++) {
        struct ss_counter *c = &e->counters[i].counter;
        if (write) {
            *c = (struct ss_counter){0, 0};
        } else {
            io->packets += c->packets;
            io->bytes += c->bytes;
        }
    }
}

int ss_entry_counter(struct ss_pipeline *pl, uint32_t table, uint32_t handle, struct ss_counter *io, int write) {
    if (table >= pl->program->n_tables) return SS_E_RANGE;
    struct ss_table *t = &pl->tables[table];
    int rc = SS_OK;
    ss_pipeline_lock(pl);
    struct ss_entry *e = handle == SS_NONE ? &t->default_entry : handle < t->n_entries ? t->entries[handle] : NULL;
    if (!e)
        rc = SS_E_RANGE;
    else
        access_counter(e, pl->threads - 1, io, write);
    ss_pipeline_unlock(pl);
    return rc;
}

int ss_entry_idle(struct ss_pipeline *pl, uint32_t table, uint32_t handle, uint64_t *idle_ns) {
    if (table >= pl->program->n_tables) return SS_E_RANGE;
    struct ss_table *t = &pl->tables[table];
    int rc = SS_E_RANGE;
    ss_pipeline_lock(pl);
    uint64_t now = pl->owner ? pl->owner->last_ns : 0;
    if (handle < t->n_entries && t->entries[handle]) {
        uint64_t last = ss_last_hit(t->entries[handle]);
        *idle_ns = now > last ? now - last : 0;
        rc = SS_OK;
    }
    ss_pipeline_unlock(pl);
    return rc;
}
