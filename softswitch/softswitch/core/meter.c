/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * RFC 2698 in color-blind mode, with BMv2's arithmetic: tokens are counted from the start of the switch in whole tokens, so that
 * no rounding adds up; the peak bucket is asked first, and a red packet takes nothing from the committed bucket. */
#include "internal.h"

/* A thread may be a little behind the one that took tokens last; then there are no fresh ones. */
static int take(uint64_t *tokens, uint64_t *last, uint64_t rate, uint64_t burst, uint64_t now_us, uint64_t amount) {
    uint64_t all = (uint64_t)((unsigned __int128)now_us * rate / 1000000u);
    uint64_t fresh = all > *last ? all - *last : 0;
    *last += fresh;
    *tokens = burst - *tokens < fresh ? burst : *tokens + fresh;
    if (*tokens < amount) return 0;
    *tokens -= amount;
    return 1;
}

static uint32_t color_of(struct ss_meter *m, uint64_t now_us, uint64_t amount) {
    if (!take(&m->ptok, &m->plast, m->pir, m->pburst, now_us, amount)) return 2;
    if (!take(&m->ctok, &m->clast, m->cir, m->cburst, now_us, amount)) return 1;
    return 0;
}

uint32_t ss_meter_run(struct ss_meter *m, uint64_t now_us, uint64_t amount) {
    if (!m->configured) return 0;
    /* Threads share a cell. */
    while (__atomic_exchange_n(&m->busy, 1, __ATOMIC_ACQUIRE)) {
    }
    uint32_t color = color_of(m, now_us, amount);
    __atomic_store_n(&m->busy, 0, __ATOMIC_RELEASE);
    return color;
}

static void configure(struct ss_meter *m, const uint64_t *config) {
    memset(m, 0, sizeof *m);
    if (!config) return;
    m->cir = config[0];
    m->cburst = m->ctok = config[1];
    m->pir = config[2];
    m->pburst = m->ptok = config[3];
    m->configured = 1;
}

int ss_meter_set(struct ss_pipeline *pl, uint32_t meter, uint32_t first, uint32_t count, const uint64_t *config) {
    if (meter >= pl->program->n_meters) return SS_E_RANGE;
    uint32_t size = pl->program->meters[meter].size;
    if (first > size || count > size - first) return SS_E_RANGE;
    ss_pipeline_lock(pl);
    for (uint32_t i = first; i < first + count; i++) configure(&pl->meters[meter][i], config);
    ss_pipeline_unlock(pl);
    return SS_OK;
}

int ss_entry_meter(struct ss_pipeline *pl, uint32_t table, uint32_t handle, const uint64_t *config) {
    if (table >= pl->program->n_tables) return SS_E_RANGE;
    struct ss_table *t = &pl->tables[table];
    int rc = SS_OK;
    ss_pipeline_lock(pl);
    struct ss_entry *e = handle == SS_NONE ? &t->default_entry : handle < t->n_entries ? t->entries[handle] : NULL;
    if (!e) {
        rc = SS_E_RANGE;
    } else {
        if (!e->meter) e->meter = calloc(1, sizeof *e->meter);
        if (e->meter)
            configure(e->meter, config);
        else
            rc = SS_E_MEMORY;
    }
    ss_pipeline_unlock(pl);
    return rc;
}
