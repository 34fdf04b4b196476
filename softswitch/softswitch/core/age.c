/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Idle timeouts: one notification per expired timeout since the last hit or notification. A heap holds the next check of each
 * entry. A hit does not update the heap, which would cost every packet; the check reinserts the entry instead. */
#include "internal.h"

static uint64_t due(const struct ss_entry *e) {
    uint64_t last = ss_last_hit(e);
    return (last > e->notified_ns ? last : e->notified_ns) + e->timeout_ns;
}

/* Sets an entry's timeout; 0: it has none. */
int ss_age_set(struct ss_pipeline *pl, struct ss_table *t, uint32_t handle, uint64_t timeout_ns) {
    struct ss_entry *e = t->entries[handle];
    uint64_t had = e->timeout_ns;
    e->timeout_ns = timeout_ns;
    e->notified_ns = 0;
    if (timeout_ns) {
        e->due_ns = due(e);
        if (had)
            ss_heap_move(&t->by_due, t->entries, handle, SS_BY_DUE);
        else if (ss_heap_add(&t->by_due, t->entries, handle, SS_BY_DUE) != SS_OK) {
            e->timeout_ns = 0;
            return SS_E_MEMORY;
        }
        if (pl->owner && e->due_ns < pl->owner->next_age_ns) pl->owner->next_age_ns = e->due_ns;
    } else if (had) {
        ss_heap_remove(&t->by_due, t->entries, handle, SS_BY_DUE);
    }
    return SS_OK;
}

/* Counts entries that were added before the program runs as hit at its start. */
void ss_ages_start(struct ss_pipeline *pl, uint64_t now_ns) {
    for (uint32_t i = 0; i < pl->program->n_tables; i++) {
        struct ss_table *t = &pl->tables[i];
        for (uint32_t j = 0; j < t->by_due.count; j++) {
            struct ss_entry *e = t->entries[t->by_due.handles[j]];
            if (e->last_hit_ns < now_ns) e->last_hit_ns = now_ns;
        }
    }
}

/* Returns the time of the next check. */
uint64_t ss_age(struct ss_switch *sw, uint64_t now_ns) {
    uint64_t next = SS_NEVER;
    struct ss_pipeline *pl = sw->pl;
    for (uint32_t i = 0; pl && i < pl->program->n_tables; i++) {
        struct ss_table *t = &pl->tables[i];
        while (t->by_due.count && t->entries[t->by_due.handles[0]]->due_ns <= now_ns) {
            uint32_t handle = t->by_due.handles[0];
            struct ss_entry *e = t->entries[handle];
            if (due(e) <= now_ns) {
                e->notified_ns = now_ns;
                ss_event_push(sw, SS_EV_IDLE, i, handle, NULL, 0);
            }
            e->due_ns = due(e);
            ss_heap_move(&t->by_due, t->entries, handle, SS_BY_DUE);
        }
        if (t->by_due.count && t->entries[t->by_due.handles[0]]->due_ns < next) next = t->entries[t->by_due.handles[0]]->due_ns;
    }
    return next;
}
