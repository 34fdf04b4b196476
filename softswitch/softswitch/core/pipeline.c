/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The state of one program: created at load, changed by control operations. */
#include <dlfcn.h>
#include <stdio.h>

#include "internal.h"

static void *zeroed(uint64_t count, uint64_t size) { return calloc(count ? count : 1, size); }

/* Allocates memory that is aligned to 64 bytes, and left to the kernel's zero pages until touched. */
static void *bank_new(const struct ss_bank_desc *d) {
    uint64_t bytes = ((uint64_t)d->cells * d->lanes * d->elem_bytes + 63 + 64) & ~63ULL;
    uint8_t *raw = calloc(1, bytes + 128);
    if (!raw) return NULL;
    uint8_t *aligned = (uint8_t *)(((uintptr_t)raw + sizeof(void *) + 63) & ~(uintptr_t)63);
    memcpy(aligned - sizeof(void *), &raw, sizeof(void *));
    return aligned;
}

static void bank_free(void *bank) {
    if (!bank) return;
    void *raw;
    memcpy(&raw, (uint8_t *)bank - sizeof(void *), sizeof raw);
    free(raw);
}

static int make_thread_state(struct ss_pipeline *pl, struct ss_shard *s) {
    const struct ss_program *g = pl->program;
    s->memos = zeroed(g->n_tables, sizeof *s->memos);
    s->counters = zeroed(g->n_counters, sizeof *s->counters);
    s->scratch = malloc(SS_MAX_FRAME + 8192);
    s->blocks = zeroed(1, sizeof *s->blocks);
    s->lock = zeroed(1, sizeof *s->lock);
    if (s->lock) ss_lock_init(s->lock);
    void *blank = NULL;
    if (!s->memos || !s->counters || !s->scratch || !s->blocks || !s->lock) return SS_E_MEMORY;
    if (posix_memalign(&blank, 64, pl->packet_bytes) != 0) return SS_E_MEMORY;
    s->blank = memset(blank, 0, pl->packet_bytes);
    s->blank->pl = pl;
    s->blank->shard = s;
    s->blank->owner = (uint8_t)s->index;
    s->blank->truncate = UINT32_MAX;
    for (uint32_t i = 0; i < g->n_big; i++) ss_bigs(s->blank)[i].at = (uint8_t *)g->zeros;
    if (ss_blocks_add(g, s, g->n_big) != SS_OK) return SS_E_MEMORY; /* loops write them beside those that they read */
    for (uint32_t i = 0; i < g->n_counters; i++)
        if (!(s->counters[i] = zeroed(g->counters[i], sizeof **s->counters))) return SS_E_MEMORY;
    return SS_OK;
}

static void free_thread_state(const struct ss_program *g, struct ss_shard *s) {
    for (uint32_t i = 0; s->counters && i < g->n_counters; i++) free(s->counters[i]);
    free(s->counters);
    free(s->memos);
    free(s->scratch);
    free(s->blank);
    while (s->blocks && *s->blocks) ss_blocks_remove(s, 1);
    free(s->blocks);
    if (s->lock) ss_lock_destroy(s->lock);
    free(s->lock);
}

static int make_state(struct ss_pipeline *pl) {
    const struct ss_program *g = pl->program;
    pl->profiles = zeroed(g->n_profiles, sizeof *pl->profiles);
    pl->tables = zeroed(g->n_tables, sizeof *pl->tables);
    pl->shards = zeroed(pl->threads, sizeof *pl->shards);
    pl->meters = zeroed(g->n_meters, sizeof *pl->meters);
    pl->banks = zeroed(g->n_banks, sizeof *pl->banks);
    pl->vsets = zeroed(g->n_vsets, sizeof *pl->vsets);
    pl->digest_on = zeroed(g->n_digests, 1);
    pl->pre = ss_pre_new();
    if (!pl->profiles || !pl->tables || !pl->shards || !pl->meters || !pl->banks || !pl->vsets || !pl->digest_on || !pl->pre)
        return SS_E_MEMORY;
    for (uint32_t i = 0; i < pl->threads; i++) {
        pl->shards[i].index = i;
        pl->shards[i].mask = pl->threads - 1;
        if (make_thread_state(pl, &pl->shards[i]) != SS_OK) return SS_E_MEMORY;
    }
    for (uint32_t i = 0; i < g->n_tables; i++)
        if (ss_table_init(&pl->tables[i], &g->tables[i], pl->profiles, pl->threads) != SS_OK) return SS_E_MEMORY;
    for (uint32_t i = 0; i < g->n_meters; i++)
        if (!(pl->meters[i] = zeroed(g->meters[i].size, sizeof **pl->meters))) return SS_E_MEMORY;
    for (uint32_t i = 0; i < g->n_banks; i++)
        if (!(pl->banks[i] = bank_new(&g->banks[i]))) return SS_E_MEMORY;
    return SS_OK;
}

struct ss_pipeline *ss_pipeline_open(const char *path, uint64_t seed, uint32_t threads, char *error, uint32_t error_bytes) {
    struct ss_pipeline *pl = zeroed(1, sizeof *pl);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct ss_program *program = object ? dlsym(object, "ss_program") : NULL;
    if (!pl || !program || program->abi != SS_ABI) {
        snprintf(error, error_bytes, "%s", !object ? dlerror() : !program ? "no ss_program in it" : "built for another core");
        if (object) dlclose(object);
        free(pl);
        return NULL;
    }
    pl->threads = threads;
    pl->object = object;
    pl->program = program;
    pl->packet_bytes = (uint32_t)((sizeof(struct ss_packet) + program->phv_bytes + 63) & ~63ULL);
    pl->random = seed * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL;
    if (make_state(pl) == SS_OK) return pl;
    snprintf(error, error_bytes, "out of memory for tables and registers");
    ss_pipeline_close(pl);
    return NULL;
}

static void free_profile(struct ss_profile *p) {
    for (uint32_t i = 0; i < p->n_members; i++) free((void *)p->members[i].data);
    for (uint32_t i = 0; i < p->n_groups; i++) free(p->groups[i].members);
    free(p->members);
    free(p->groups);
}

void ss_pipeline_close(struct ss_pipeline *pl) {
    const struct ss_program *g = pl->program;
    for (uint32_t i = 0; pl->tables && i < g->n_tables; i++) ss_table_free(&pl->tables[i]);
    for (uint32_t i = 0; pl->profiles && i < g->n_profiles; i++) free_profile(&pl->profiles[i]);
    for (uint32_t i = 0; pl->shards && i < pl->threads; i++) free_thread_state(g, &pl->shards[i]);
    for (uint32_t i = 0; pl->meters && i < g->n_meters; i++) free(pl->meters[i]);
    for (uint32_t i = 0; pl->banks && i < g->n_banks; i++) bank_free(pl->banks[i]);
    for (uint32_t i = 0; pl->vsets && i < g->n_vsets; i++) free(pl->vsets[i].members);
    free(pl->tables);
    free(pl->profiles);
    free(pl->shards);
    free(pl->meters);
    free(pl->banks);
    free(pl->vsets);
    free(pl->digest_on);
    ss_pre_free(pl->pre);
    void *object = pl->object;
    free(pl);
    dlclose(object);
}

/* Draws by splitmix64, and reduces to a range by Lemire's method. */
uint64_t ss_random(struct ss_pipeline *pl, uint64_t lo, uint64_t hi) {
    uint64_t z = __atomic_add_fetch(&pl->random, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    uint64_t span = hi - lo + 1;
    return span == 0 ? z : lo + (uint64_t)(((unsigned __int128)z * span) >> 64);
}

int ss_vset_has(const struct ss_vset *v, const uint64_t *key, unsigned words) {
    for (uint32_t m = 0; m < v->count; m++) {
        const uint64_t *value = v->members + (uint64_t)m * 2 * words, *mask = value + words;
        unsigned same = 1;
        for (unsigned i = 0; i < words; i++) same &= (key[i] & mask[i]) == value[i];
        if (same) return 1;
    }
    return 0;
}

int ss_vset_set(struct ss_pipeline *pl, uint32_t vset, const uint64_t *members, uint32_t count) {
    if (vset >= pl->program->n_vsets) return SS_E_RANGE;
    uint64_t bytes = (uint64_t)count * 2 * pl->program->vsets[vset].words * 8;
    uint64_t *copy = malloc(bytes ? bytes : 8);
    if (!copy) return SS_E_MEMORY;
    if (bytes) memcpy(copy, members, bytes);
    ss_pipeline_lock(pl);
    struct ss_vset *v = &pl->vsets[vset];
    uint64_t *old = v->members;
    v->members = copy;
    v->count = count;
    ss_pipeline_unlock(pl);
    free(old);
    return SS_OK;
}

/* Grows an array of zeroed elements to hold `index`. */
static int reach(void **array, uint32_t *n, uint32_t index, uint64_t size) {
    if (index < *n) return SS_OK;
    uint32_t want = *n ? *n : 16;
    while (want <= index) want *= 2;
    void *grown = realloc(*array, want * size);
    if (!grown) return SS_E_MEMORY;
    memset((uint8_t *)grown + *n * size, 0, (want - *n) * size);
    *array = grown;
    *n = want;
    return SS_OK;
}

int ss_member_set(struct ss_pipeline *pl, uint32_t profile, uint32_t index, const struct ss_action_spec *action) {
    if (profile >= pl->program->n_profiles || index >= 1u << 24) return SS_E_RANGE;
    uint64_t *data = NULL;
    if (action) {
        data = malloc(action->words ? action->words * 8 : 8);
        if (!data) return SS_E_MEMORY;
        memcpy(data, action->data, action->words * 8);
    }
    ss_pipeline_lock(pl);
    struct ss_profile *p = &pl->profiles[profile];
    int rc = reach((void **)&p->members, &p->n_members, index, sizeof *p->members);
    if (rc == SS_OK) {
        const uint64_t *old = p->members[index].data;
        p->members[index] = (struct ss_act){action ? action->index : SS_NONE, action != NULL, data};
        data = (uint64_t *)old;
    }
    ss_pipeline_unlock(pl);
    free(data);
    return rc;
}

/* Outside a switch no port is up; ss_swap recomputes the live members. */
static void select_live(const struct ss_pipeline *pl, struct ss_group *g) {
    g->count = 0;
    if (g->total == 0) return;
    const uint32_t *all = g->members + g->total, *watch = all + g->total;
    for (uint32_t i = 0; i < g->total; i++)
        if (watch[i] == SS_NONE || (pl->owner && watch[i] <= SS_MAX_PORT && pl->owner->up[watch[i]]))
            g->members[g->count++] = all[i];
}

void ss_groups_update_live(struct ss_pipeline *pl) {
    for (uint32_t i = 0; i < pl->program->n_profiles; i++)
        for (uint32_t j = 0; j < pl->profiles[i].n_groups; j++) select_live(pl, &pl->profiles[i].groups[j]);
}

int ss_group_set(struct ss_pipeline *pl, uint32_t profile, uint32_t index, const uint32_t *members, const uint32_t *watch,
                 uint32_t count) {
    if (profile >= pl->program->n_profiles || index >= 1u << 24) return SS_E_RANGE;
    uint32_t *list = malloc(count ? (uint64_t)count * 3 * sizeof *list : sizeof *list);
    if (!list) return SS_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        list[count + i] = members[i];
        list[2 * (uint64_t)count + i] = watch[i];
    }
    ss_pipeline_lock(pl);
    struct ss_profile *p = &pl->profiles[profile];
    int rc = reach((void **)&p->groups, &p->n_groups, index, sizeof *p->groups);
    if (rc == SS_OK) {
        uint32_t *old = p->groups[index].members;
        p->groups[index] = (struct ss_group){0, count, list};
        select_live(pl, &p->groups[index]);
        list = old;
    }
    ss_pipeline_unlock(pl);
    free(list);
    return rc;
}

/* A written value counts for shard 0; a read returns the sum of all shards. */
static void access_counters(struct ss_counter *cells, uint32_t count, struct ss_counter *io, int write, uint32_t shard) {
    if (shard == 0) {
        memcpy(write ? cells : io, write ? io : cells, count * sizeof *io);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (write) {
            cells[i] = (struct ss_counter){0, 0};
        } else {
            io[i].packets += cells[i].packets;
            io[i].bytes += cells[i].bytes;
        }
    }
}

int ss_counter_io(struct ss_pipeline *pl, uint32_t counter, uint32_t first, uint32_t count, struct ss_counter *io, int write) {
    if (counter >= pl->program->n_counters) return SS_E_RANGE;
    uint32_t size = pl->program->counters[counter];
    if (first > size || count > size - first) return SS_E_RANGE;
    ss_pipeline_lock(pl);
    for (uint32_t i = 0; i < pl->threads; i++) access_counters(pl->shards[i].counters[counter] + first, count, io, write, i);
    ss_pipeline_unlock(pl);
    return SS_OK;
}

int ss_register_io(struct ss_pipeline *pl, uint32_t reg, uint32_t first, uint32_t count, uint8_t *bytes, int write) {
    if (reg >= pl->program->n_regs) return SS_E_RANGE;
    const struct ss_reg_desc *r = &pl->program->regs[reg];
    const struct ss_bank_desc *b = &pl->program->banks[r->bank];
    if (first > b->cells || count > b->cells - first) return SS_E_RANGE;
    uint8_t *base = pl->banks[r->bank];
    ss_pipeline_lock(pl);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *cell = base + ((uint64_t)(first + i) * b->lanes + r->lane) * b->elem_bytes;
        if (write)
            memcpy(cell, bytes + (uint64_t)i * b->elem_bytes, b->elem_bytes);
        else
            memcpy(bytes + (uint64_t)i * b->elem_bytes, cell, b->elem_bytes);
    }
    ss_pipeline_unlock(pl);
    return SS_OK;
}

int ss_digest_enable(struct ss_pipeline *pl, uint32_t list, int on) {
    if (list == 0 || list > pl->program->n_digests) return SS_E_RANGE;
    ss_pipeline_lock(pl);
    pl->digest_on[list - 1] = on != 0;
    ss_pipeline_unlock(pl);
    return SS_OK;
}
