/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "shares.h"

#include <math.h>
#include <stdlib.h>

#define FULL 1e-9 /* a link is full when no greater part of it is free */
#define MANY 8    /* from so many chosen flows on, neighbors are chosen before they are wronged: fewer rounds */
#define FAR 4     /* rounds after which a change goes far: one round over all is less than many over ever more of them */

int nf_shares_open(struct nf_shares *s, int32_t links, int32_t flows, int64_t entries) {
    *s = (struct nf_shares){.link_count = links, .flow_count = flows};
    s->links = calloc((size_t)links + 1, sizeof *s->links);
    s->flows = calloc((size_t)flows + 1, sizeof *s->flows);
    s->entries = calloc((size_t)entries + 1, sizeof *s->entries);
    s->chosen = calloc((size_t)flows + 1, sizeof *s->chosen);
    s->touched = calloc((size_t)links + 1, sizeof *s->touched);
    s->heap = calloc((size_t)links + (size_t)flows + 1, sizeof *s->heap);
    if (!s->links || !s->flows || !s->entries || !s->chosen || !s->touched || !s->heap) {
        nf_shares_close(s);
        return -1;
    }
    return 0;
}

void nf_shares_close(struct nf_shares *s) {
    for (int32_t l = 0; s->links && l < s->link_count; l++)
        free(s->links[l].members);
    free(s->links);
    free(s->flows);
    free(s->entries);
    free(s->chosen);
    free(s->touched);
    free(s->heap);
    *s = (struct nf_shares){0};
}

/* ---- who is solved anew ---- */

static void touch(struct nf_shares *s, int32_t link) {
    struct nf_link *l = &s->links[link];
    if (l->touched == s->round)
        return;
    l->touched = s->round;
    l->fixed = l->load;
    s->touched[s->touched_count++] = link;
}

static void choose(struct nf_shares *s, int32_t flow) {
    struct nf_flow *f = &s->flows[flow];
    if (f->chosen == s->round)
        return;
    f->chosen = s->round;
    s->chosen[s->chosen_count++] = flow;
    if (f->bottleneck >= 0)
        s->links[f->bottleneck].holds--;
    for (int64_t e = f->first; e < f->last; e++) {
        touch(s, s->entries[e].link);
        s->links[s->entries[e].link].fixed -= s->entries[e].coef * f->rate;
    }
}

static void choose_held_by(struct nf_shares *s, int32_t link) {
    const struct nf_link *l = &s->links[link];
    for (int32_t i = 0; l->holds && i < l->count; i++)
        if (s->flows[l->members[i].flow].bottleneck == link)
            choose(s, l->members[i].flow);
}

void nf_shares_begin(struct nf_shares *s) {
    s->round++;
    s->chosen_count = s->touched_count = 0;
}

int nf_shares_add(struct nf_shares *s, int32_t flow) {
    struct nf_flow *f = &s->flows[flow];
    for (int64_t e = f->first; e < f->last; e++) {
        struct nf_link *l = &s->links[s->entries[e].link];
        if (l->count == l->room) {
            int32_t room = l->room ? 2 * l->room : 4;
            struct nf_member *more = realloc(l->members, (size_t)room * sizeof *more);
            if (!more)
                return -1;
            l->members = more;
            l->room = room;
        }
        s->entries[e].place = l->count;
        l->members[l->count++] = (struct nf_member){flow, e, s->entries[e].coef};
    }
    f->rate = f->next = 0;
    f->bottleneck = NF_NOWHERE;
    f->active = 1;
    choose(s, flow);
    for (int64_t e = f->first; e < f->last; e++) {
        const struct nf_link *l = &s->links[s->entries[e].link];
        if (l->load >= l->capacity * (1 - FULL))
            choose_held_by(s, s->entries[e].link);
    }
    return 0;
}

void nf_shares_remove(struct nf_shares *s, int32_t flow) {
    struct nf_flow *f = &s->flows[flow];
    f->active = 0;
    if (f->chosen != s->round && f->bottleneck >= 0)
        s->links[f->bottleneck].holds--;
    f->bottleneck = NF_NOWHERE;
    for (int64_t e = f->first; e < f->last; e++) {
        int32_t link = s->entries[e].link;
        struct nf_link *l = &s->links[link];
        touch(s, link);
        l->load -= s->entries[e].coef * f->rate;
        if (f->chosen != s->round) /* otherwise choosing it took it off already */
            l->fixed -= s->entries[e].coef * f->rate;
        struct nf_member last = l->members[--l->count];
        if (last.entry != e) {
            l->members[s->entries[e].place] = last;
            s->entries[last.entry].place = s->entries[e].place;
        }
        choose_held_by(s, link);
    }
}

/* ---- filling up ---- */

static int before(struct nf_key a, struct nf_key b) {
    return a.level != b.level ? a.level < b.level : a.id < b.id;
}

static void sink(struct nf_shares *s, int64_t at) {
    struct nf_key moving = s->heap[at];
    for (int64_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        if (child + 1 < s->heap_count && before(s->heap[child + 1], s->heap[child]))
            child++;
        if (!before(s->heap[child], moving))
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = moving;
}

static void settle(struct nf_shares *s, int32_t flow, double level, int32_t bottleneck) {
    struct nf_flow *f = &s->flows[flow];
    f->settled = 1;
    f->next = f->weight * level;
    f->bottleneck = bottleneck;
    for (int64_t e = f->first; e < f->last; e++) {
        struct nf_link *l = &s->links[s->entries[e].link];
        l->residual -= s->entries[e].coef * f->next;
        l->weights -= s->entries[e].coef * f->weight;
        l->wanted -= s->entries[e].coef * f->most;
        l->most = level; /* levels come ascending */
        l->open--;
    }
    if (bottleneck >= 0)
        s->links[bottleneck].held = level;
}

static double level_of(const struct nf_link *l) {
    return l->residual > 0 && l->weights > 0 ? l->residual / l->weights : 0;
}

/* Would the link be full if all who have no rate yet had as much as the emptiest link on their way leaves each of them
 * alone? No other link can become full. */
static int may_fill(const struct nf_link *l) {
    return l->open && l->wanted >= l->residual - l->capacity * FULL;
}

/* What could hold a chosen flow up: its cap, or a link that may fill. How many flows want a rate? */
static int32_t gather(struct nf_shares *s) {
    for (int32_t i = 0; i < s->touched_count; i++) {
        struct nf_link *l = &s->links[s->touched[i]];
        l->residual = l->capacity - l->fixed;
        l->weights = l->wanted = l->most = 0;
        l->held = INFINITY;
        l->open = 0;
    }
    int32_t open = 0;
    s->heap_count = 0;
    for (int32_t i = 0; i < s->chosen_count; i++) {
        struct nf_flow *f = &s->flows[s->chosen[i]];
        f->settled = !f->active;
        if (!f->active)
            continue;
        open++;
        f->most = f->cap;
        for (int64_t e = f->first; e < f->last; e++) {
            struct nf_link *l = &s->links[s->entries[e].link];
            l->weights += s->entries[e].coef * f->weight;
            l->open++;
            if (l->residual < f->most * s->entries[e].coef)
                f->most = fmax(l->residual, 0) / s->entries[e].coef;
        }
        if (f->most == f->cap)
            s->heap[s->heap_count++] = (struct nf_key){f->cap / f->weight, ~s->chosen[i]};
        for (int64_t e = f->first; e < f->last; e++)
            s->links[s->entries[e].link].wanted += s->entries[e].coef * f->most;
    }
    for (int32_t i = 0; i < s->touched_count; i++) {
        const struct nf_link *l = &s->links[s->touched[i]];
        if (may_fill(l))
            s->heap[s->heap_count++] = (struct nf_key){level_of(l), s->touched[i]};
    }
    for (int64_t i = s->heap_count / 2; i-- > 0;)
        sink(s, i);
    return open;
}

/* Rates of the chosen flows in what the others leave: the level of all rises until a link is full or a cap is reached,
 * which settles those that it concerns. A link's level never falls while others settle, so the heap may be behind. */
static void fill(struct nf_shares *s) {
    int32_t open = gather(s);
    while (open) {
        struct nf_key least = s->heap[0];
        if (least.id < 0) {
            if (!s->flows[~least.id].settled) {
                settle(s, ~least.id, least.level, NF_AT_CAP);
                open--;
            }
        } else {
            struct nf_link *l = &s->links[least.id];
            double level = level_of(l);
            if (may_fill(l) && level > least.level * (1 + 1e-12)) {
                s->heap[0].level = level;
                sink(s, 0);
                continue;
            }
            for (int32_t i = 0; may_fill(l) && i < l->count; i++) {
                const struct nf_flow *f = &s->flows[l->members[i].flow];
                if (f->chosen == s->round && !f->settled) {
                    settle(s, l->members[i].flow, level, least.id);
                    open--;
                }
            }
        }
        s->heap[0] = s->heap[--s->heap_count];
        if (s->heap_count)
            sink(s, 0);
    }
}

/* Chooses those who keep their rates but may not: whose bottleneck has room now, or lets another have more; and those
 * who have more on a link than one whose bottleneck it is. Leaves each link's load. How many were chosen? */
static int32_t choose_wronged(struct nf_shares *s) {
    int32_t links = s->touched_count, flows = s->chosen_count;
    double slack = s->tolerance > FULL ? s->tolerance : FULL;
    for (int32_t i = 0; i < links; i++) {
        int32_t link = s->touched[i];
        struct nf_link *l = &s->links[link];
        l->load = l->count ? l->capacity - l->residual : 0;
        if (!l->holds && l->held == INFINITY)
            continue;
        int full = l->load >= l->capacity * (1 - slack);
        for (int32_t m = 0; m < l->count; m++) {
            const struct nf_flow *f = &s->flows[l->members[m].flow];
            if (f->chosen == s->round)
                continue;
            double level = f->rate / f->weight;
            if ((f->bottleneck == link && (!full || l->most > level * (1 + slack))) ||
                level > l->held * (1 + slack))
                choose(s, l->members[m].flow);
        }
    }
    int32_t wronged = s->chosen_count;
    for (int32_t i = flows; flows >= MANY && i < wronged; i++)
        for (int64_t e = s->flows[s->chosen[i]].first; e < s->flows[s->chosen[i]].last; e++)
            choose_held_by(s, s->entries[e].link);
    return wronged - flows;
}

/* All whom the chosen could concern over any number of links. */
static void choose_all_around(struct nf_shares *s) {
    for (int32_t i = 0; i < s->touched_count; i++)
        choose_held_by(s, s->touched[i]);
}

void nf_shares_solve(struct nf_shares *s) {
    for (int32_t round = 1;; round++) {
        fill(s);
        if (!choose_wronged(s))
            return;
        if (round >= FAR)
            choose_all_around(s);
    }
}

void nf_shares_commit(struct nf_shares *s) {
    for (int32_t i = 0; i < s->chosen_count; i++) {
        struct nf_flow *f = &s->flows[s->chosen[i]];
        f->rate = f->active ? f->next : 0;
        if (f->active && f->bottleneck >= 0)
            s->links[f->bottleneck].holds++;
    }
}
