/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tables as tuple spaces (Srinivasan, Suri, Varghese, SIGCOMM 1999): one hash for each distinct mask, tried in the order of
 * the best priority inside. An exact table has one tuple; a longest-prefix table one for each prefix length in use, with
 * the length as the priority. The lookup itself is ss_lookup in runtime/program.h. */
#include "internal.h"

int ss_table_init(struct ss_table *t, const struct ss_table_desc *d, struct ss_profile *profiles) {
  memset(t, 0, sizeof *t);
  t->words = d->words;
  t->ranges = d->ranges;
  t->profile = d->profile >= 0 ? &profiles[d->profile] : NULL;
  t->fallback.action = SS_NONE;
  return SS_OK;
}

void ss_entry_free(struct ss_entry *e) {
  if (!e) return;
  free((void *)e->data);
  free((void *)e->range);
  free(e->meter);
  free(e);
}

void ss_table_free(struct ss_table *t) {
  for (uint32_t i = 0; i < t->n_entries; i++) ss_entry_free(t->entries[i]);
  for (uint32_t i = 0; i < t->n_tuples; i++) {
    free(t->tuples[i].slots);
    free(t->tuples[i].mask);
    free(t->tuples[i].keys);
  }
  free(t->tuples);
  free(t->entries);
  free((void *)t->fallback.data);
  free(t->fallback.meter);
}

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

/* The tuple of a mask, made if missing. Order is restored by `sort`. */
static struct ss_tuple *tuple_for(struct ss_table *t, const uint64_t *mask) {
  for (uint32_t i = 0; i < t->n_tuples; i++)
    if (memcmp(t->tuples[i].mask, mask, t->words * 8) == 0) return &t->tuples[i];
  struct ss_tuple *tuples = realloc(t->tuples, (t->n_tuples + 1) * sizeof *tuples);
  if (!tuples) return NULL;
  t->tuples = tuples;
  struct ss_tuple *tu = &tuples[t->n_tuples];
  memset(tu, 0, sizeof *tu);
  tu->best = INT64_MIN;
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

static uint32_t free_handle(struct ss_table *t) {
  for (uint32_t i = 0; t->count < t->n_entries && i < t->n_entries; i++) {
    uint32_t at = (t->hint + i) % t->n_entries;
    if (t->entries[at]) continue;
    t->hint = at + 1;
    return at;
  }
  uint32_t n = t->n_entries ? t->n_entries * 2 : 16;
  struct ss_entry **entries = realloc(t->entries, n * sizeof *entries);
  if (!entries) return SS_NONE;
  memset(entries + t->n_entries, 0, (n - t->n_entries) * sizeof *entries);
  t->entries = entries;
  uint32_t handle = t->n_entries;
  t->n_entries = n;
  t->hint = handle + 1;
  return handle;
}

static uint64_t *copy_words(const uint64_t *from, uint32_t words) {
  uint64_t *to = malloc(words ? words * 8 : 8);
  if (to && words) memcpy(to, from, words * 8);
  return to;
}

static int link_entry(struct ss_table *t, struct ss_entry *e, uint32_t handle) {
  struct ss_tuple *tu = tuple_for(t, e->key + t->words);
  if (!tu) return SS_E_MEMORY;
  if (tu->count * 2 >= tu->capacity && grow(t, tu) != SS_OK) return SS_E_MEMORY;
  int found;
  uint32_t at = find_slot(t, tu, e->key, &found);
  if (!found) {
    tu->slots[at] = SS_NONE;
    memcpy(tu->keys + (uint64_t)at * t->words, e->key, t->words * 8);
    tu->count++;
  }
  uint32_t *link = &tu->slots[at];
  while (*link != SS_NONE && before(t->entries[*link], e)) link = &t->entries[*link]->next;
  e->next = *link;
  *link = handle;
  if (e->priority > tu->best) tu->best = e->priority;
  sort(t);
  return SS_OK;
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
  e->range = t->ranges ? copy_words(range, t->ranges * 2) : NULL;
  e->timeout_ns = timeout_ns;
  ss_lock_take(pl->lock);
  e->last_hit_ns = pl->owner ? pl->owner->last_ns : 0;
  uint32_t handle = e->data && (e->range || !t->ranges) ? free_handle(t) : SS_NONE;
  if (handle != SS_NONE && link_entry(t, e, handle) == SS_OK) {
    t->entries[handle] = e;
    t->count++;
    t->timed += timeout_ns != 0;
    if (timeout_ns && pl->owner) pl->owner->next_age_ns = 0;
    rc = handle;
  } else {
    ss_entry_free(e);
  }
  ss_lock_leave(pl->lock);
  return rc;
}

int ss_entry_set(struct ss_pipeline *pl, uint32_t table, uint32_t handle, const struct ss_action_spec *action, uint64_t timeout_ns) {
  if (table >= pl->program->n_tables) return SS_E_RANGE;
  struct ss_table *t = &pl->tables[table];
  uint64_t *data = copy_words(action->data, action->words);
  if (!data) return SS_E_MEMORY;
  int rc = SS_E_RANGE;
  ss_lock_take(pl->lock);
  if (handle < t->n_entries && t->entries[handle]) {
    struct ss_entry *e = t->entries[handle];
    const uint64_t *old = e->data;
    e->kind = (uint8_t)action->kind;
    e->action = action->index;
    e->data = data;
    data = (uint64_t *)old;
    t->timed += (timeout_ns != 0) - (e->timeout_ns != 0);
    e->timeout_ns = timeout_ns;
    e->noticed_ns = 0;
    if (timeout_ns && pl->owner) pl->owner->next_age_ns = 0;
    rc = SS_OK;
  }
  ss_lock_leave(pl->lock);
  free(data);
  return rc;
}

/* Takes the key out of an open-addressed tuple and closes the gap behind it. */
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

static void drop_tuple(struct ss_table *t, struct ss_tuple *tu) {
  free(tu->slots);
  free(tu->mask);
  free(tu->keys);
  memmove(tu, tu + 1, (uint64_t)(t->tuples + t->n_tuples - (tu + 1)) * sizeof *tu);
  t->n_tuples--;
}

static void unlink_entry(struct ss_table *t, struct ss_entry *e, uint32_t handle) {
  struct ss_tuple *tu = tuple_for(t, e->key + t->words);
  int found;
  uint32_t at = find_slot(t, tu, e->key, &found);
  uint32_t *link = &tu->slots[at];
  while (*link != handle) link = &t->entries[*link]->next;
  *link = e->next;
  if (tu->slots[at] == SS_NONE) remove_slot(t, tu, at);
  if (tu->count == 0) {
    drop_tuple(t, tu);
  } else if (e->priority == tu->best) {
    tu->best = INT64_MIN;
    for (uint32_t i = 0; i < tu->capacity; i++)
      if (tu->slots[i] != SS_NONE && t->entries[tu->slots[i]]->priority > tu->best) tu->best = t->entries[tu->slots[i]]->priority;
    sort(t);
  }
}

int ss_entry_del(struct ss_pipeline *pl, uint32_t table, uint32_t handle) {
  if (table >= pl->program->n_tables) return SS_E_RANGE;
  struct ss_table *t = &pl->tables[table];
  struct ss_entry *e = NULL;
  ss_lock_take(pl->lock);
  if (handle < t->n_entries && t->entries[handle]) {
    e = t->entries[handle];
    unlink_entry(t, e, handle);
    t->entries[handle] = NULL;
    t->count--;
    t->timed -= e->timeout_ns != 0;
  }
  ss_lock_leave(pl->lock);
  int rc = e ? SS_OK : SS_E_RANGE;
  ss_entry_free(e);
  return rc;
}

int ss_default_set(struct ss_pipeline *pl, uint32_t table, const struct ss_action_spec *action) {
  if (table >= pl->program->n_tables) return SS_E_RANGE;
  struct ss_table *t = &pl->tables[table];
  uint64_t *data = action ? copy_words(action->data, action->words) : NULL;
  if (action && !data) return SS_E_MEMORY;
  ss_lock_take(pl->lock);
  const uint64_t *old = t->fallback.data;
  t->fallback.kind = action ? (uint8_t)action->kind : SS_ACTION;
  t->fallback.action = action ? action->index : SS_NONE;
  t->fallback.data = data;
  ss_lock_leave(pl->lock);
  free((void *)old);
  return SS_OK;
}

int ss_entry_counter(struct ss_pipeline *pl, uint32_t table, uint32_t handle, struct ss_counter *io, int write) {
  if (table >= pl->program->n_tables) return SS_E_RANGE;
  struct ss_table *t = &pl->tables[table];
  int rc = SS_OK;
  ss_lock_take(pl->lock);
  struct ss_entry *e = handle == SS_NONE ? &t->fallback : handle < t->n_entries ? t->entries[handle] : NULL;
  if (!e) rc = SS_E_RANGE;
  else if (write) e->counter = *io;
  else *io = e->counter;
  ss_lock_leave(pl->lock);
  return rc;
}

int ss_entry_idle(struct ss_pipeline *pl, uint32_t table, uint32_t handle, uint64_t *idle_ns) {
  if (table >= pl->program->n_tables) return SS_E_RANGE;
  struct ss_table *t = &pl->tables[table];
  int rc = SS_E_RANGE;
  ss_lock_take(pl->lock);
  uint64_t now = pl->owner ? pl->owner->last_ns : 0;
  if (handle < t->n_entries && t->entries[handle]) {
    uint64_t last = t->entries[handle]->last_hit_ns;
    *idle_ns = now > last ? now - last : 0;
    rc = SS_OK;
  }
  ss_lock_leave(pl->lock);
  return rc;
}

/* Entries that were added before the program ran count as hit when it starts. */
void ss_start_ages(struct ss_pipeline *pl, uint64_t now_ns) {
  for (uint32_t i = 0; i < pl->program->n_tables; i++)
    for (uint32_t h = 0; pl->tables[i].timed && h < pl->tables[i].n_entries; h++) {
      struct ss_entry *e = pl->tables[i].entries[h];
      if (e && e->last_hit_ns < now_ns) e->last_hit_ns = now_ns;
    }
}

/* One notice for each timeout that ran out since the last hit or notice. Returns when to look again. */
uint64_t ss_age(struct ss_switch *sw, uint64_t now_ns) {
  uint64_t next = SS_NEVER;
  struct ss_pipeline *pl = sw->pl;
  for (uint32_t i = 0; pl && i < pl->program->n_tables; i++) {
    struct ss_table *t = &pl->tables[i];
    for (uint32_t h = 0; t->timed && h < t->n_entries; h++) {
      struct ss_entry *e = t->entries[h];
      if (!e || !e->timeout_ns) continue;
      uint64_t since = e->last_hit_ns > e->noticed_ns ? e->last_hit_ns : e->noticed_ns;
      if (since + e->timeout_ns <= now_ns) {
        since = e->noticed_ns = now_ns;
        ss_event_push(sw, SS_EV_IDLE, i, h, NULL, 0);
      }
      if (since + e->timeout_ns < next) next = since + e->timeout_ns;
    }
  }
  /* A new entry or a hit may set an earlier instant: look at least ten times a second while anything is timed. */
  for (uint32_t i = 0; pl && i < pl->program->n_tables; i++)
    if (pl->tables[i].timed && next > now_ns + 100000000u) next = now_ns + 100000000u;
  return next;
}
