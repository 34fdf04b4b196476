/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Idle timeouts: one notice for each timeout that ran out since the last hit or notice. A heap holds when each entry is to be
 * looked at; a hit does not move it (that would cost every packet), so it is looked at then and put back. */
#include "internal.h"

static uint64_t due(const struct ss_entry *e) {
  return (e->last_hit_ns > e->noticed_ns ? e->last_hit_ns : e->noticed_ns) + e->timeout_ns;
}

/* An entry's timeout, 0 = none from now on. */
int ss_age_set(struct ss_pipeline *pl, struct ss_table *t, uint32_t handle, uint64_t timeout_ns) {
  struct ss_entry *e = t->entries[handle];
  uint64_t had = e->timeout_ns;
  e->timeout_ns = timeout_ns;
  e->noticed_ns = 0;
  if (timeout_ns) {
    e->due_ns = due(e);
    if (had) ss_heap_move(&t->by_due, t->entries, handle, SS_BY_DUE);
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

/* Entries that were added before the program ran count as hit when it starts. */
void ss_start_ages(struct ss_pipeline *pl, uint64_t now_ns) {
  for (uint32_t i = 0; i < pl->program->n_tables; i++) {
    struct ss_table *t = &pl->tables[i];
    for (uint32_t j = 0; j < t->by_due.count; j++) {
      struct ss_entry *e = t->entries[t->by_due.handles[j]];
      if (e->last_hit_ns < now_ns) e->last_hit_ns = now_ns;
    }
  }
}

/* Returns when to look again. */
uint64_t ss_age(struct ss_switch *sw, uint64_t now_ns) {
  uint64_t next = SS_NEVER;
  struct ss_pipeline *pl = sw->pl;
  for (uint32_t i = 0; pl && i < pl->program->n_tables; i++) {
    struct ss_table *t = &pl->tables[i];
    while (t->by_due.count && t->entries[t->by_due.handles[0]]->due_ns <= now_ns) {
      uint32_t handle = t->by_due.handles[0];
      struct ss_entry *e = t->entries[handle];
      if (due(e) <= now_ns) {
        e->noticed_ns = now_ns;
        ss_event_push(sw, SS_EV_IDLE, i, handle, NULL, 0);
      }
      e->due_ns = due(e);
      ss_heap_move(&t->by_due, t->entries, handle, SS_BY_DUE);
    }
    if (t->by_due.count && t->entries[t->by_due.handles[0]]->due_ns < next) next = t->entries[t->by_due.handles[0]]->due_ns;
  }
  return next;
}
