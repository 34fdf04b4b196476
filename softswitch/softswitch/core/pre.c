/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The packet replication engine: multicast groups and clone sessions, each a list of (port, rid). */
#include "internal.h"

#define GROUPS 65536u
#define SESSIONS 32768u

struct ss_pre *ss_pre_new(void) {
    struct ss_pre *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->groups = calloc(GROUPS, sizeof *p->groups);
    p->clones = calloc(SESSIONS, sizeof *p->clones);
    if (p->groups && p->clones) return p;
    ss_pre_free(p);
    return NULL;
}

void ss_pre_free(struct ss_pre *p) {
    if (!p) return;
    for (uint32_t i = 0; p->groups && i < GROUPS; i++) free(p->groups[i].list);
    for (uint32_t i = 0; p->clones && i < SESSIONS; i++) free(p->clones[i].list);
    free(p->groups);
    free(p->clones);
    free(p);
}

static int replace(struct ss_pipeline *pl, struct ss_replicas *r, const struct ss_replica *list, uint32_t count, uint32_t cut) {
    struct ss_replica *copy = NULL;
    if (count) {
        copy = malloc(count * sizeof *copy);
        if (!copy) return SS_E_MEMORY;
        memcpy(copy, list, count * sizeof *copy);
    }
    ss_pipeline_lock(pl);
    struct ss_replica *old = r->list;
    r->list = copy;
    r->count = count;
    r->cut = cut;
    ss_pipeline_unlock(pl);
    free(old);
    return SS_OK;
}

int ss_group_replicas(struct ss_pipeline *pl, uint32_t group, const struct ss_replica *list, uint32_t count) {
    return group < GROUPS ? replace(pl, &pl->pre->groups[group], list, count, 0) : SS_E_RANGE;
}

int ss_clone_replicas(struct ss_pipeline *pl, uint32_t session, const struct ss_replica *list, uint32_t count, uint32_t cut) {
    return session < SESSIONS ? replace(pl, &pl->pre->clones[session], list, count, cut) : SS_E_RANGE;
}
