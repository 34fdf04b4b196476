/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "max_min.h"

#include <math.h>
#include <stdlib.h>

#define FULL_SLACK 1e-9     /* a link is full if no larger part of it is free */
#define MIN_EARLY_CHOICE 8  /* chosen flows from which neighbors are chosen before they violate a condition: fewer rounds */
#define MAX_LOCAL_ROUNDS 4  /* then all connected flows are chosen: one large round is cheaper than many growing ones */

int sf_max_min_open(struct sf_max_min *m, int32_t links, int32_t flows, int64_t entries) {
    *m = (struct sf_max_min){.link_count = links, .flow_count = flows};
    m->links = calloc((size_t)links + 1, sizeof *m->links);
    m->flows = calloc((size_t)flows + 1, sizeof *m->flows);
    m->entries = calloc((size_t)entries + 1, sizeof *m->entries);
    m->chosen = calloc((size_t)flows + 1, sizeof *m->chosen);
    m->touched = calloc((size_t)links + 1, sizeof *m->touched);
    m->heap = calloc((size_t)links + (size_t)flows + 1, sizeof *m->heap);
    if (!m->links || !m->flows || !m->entries || !m->chosen || !m->touched || !m->heap) {
        sf_max_min_close(m);
        return -1;
    }
    return 0;
}

void sf_max_min_close(struct sf_max_min *m) {
    for (int32_t l = 0; m->links && l < m->link_count; l++) free(m->links[l].members);
    free(m->links);
    free(m->flows);
    free(m->entries);
    free(m->chosen);
    free(m->touched);
    free(m->heap);
    *m = (struct sf_max_min){0};
}

/* ---- which flows are solved again ---- */

static void touch(struct sf_max_min *m, int32_t link) {
    struct sf_link *l = &m->links[link];
    if (l->touched_in == m->round) return;
    l->touched_in = m->round;
    l->fixed = l->load;
    m->touched[m->touched_count++] = link;
}

static void choose(struct sf_max_min *m, int32_t flow) {
    struct sf_flow *f = &m->flows[flow];
    if (f->chosen_in == m->round) return;
    f->chosen_in = m->round;
    m->chosen[m->chosen_count++] = flow;
    if (f->bottleneck >= 0) m->links[f->bottleneck].held_count--;
    for (int64_t e = f->first; e < f->last; e++) {
        touch(m, m->entries[e].link);
        m->links[m->entries[e].link].fixed -= m->entries[e].coef * f->rate;
    }
}

static void choose_bottlenecked_at(struct sf_max_min *m, int32_t link) {
    const struct sf_link *l = &m->links[link];
    for (int32_t i = 0; l->held_count && i < l->count; i++)
        if (m->flows[l->members[i].flow].bottleneck == link) choose(m, l->members[i].flow);
}

void sf_max_min_begin(struct sf_max_min *m) {
    m->round++;
    m->chosen_count = m->touched_count = 0;
}

int sf_max_min_add(struct sf_max_min *m, int32_t flow) {
    struct sf_flow *f = &m->flows[flow];
    for (int64_t e = f->first; e < f->last; e++) {
        struct sf_link *l = &m->links[m->entries[e].link];
        if (l->count == l->room) {
            int32_t room = l->room ? 2 * l->room : 4;
            struct sf_member *more = realloc(l->members, (size_t)room * sizeof *more);
            if (!more) return -1;
            l->members = more;
            l->room = room;
        }
        m->entries[e].place = l->count;
        l->members[l->count++] = (struct sf_member){flow, e, m->entries[e].coef};
    }
    f->rate = f->next = 0;
    f->bottleneck = SF_NO_BOTTLENECK;
    f->is_active = 1;
    choose(m, flow);
    for (int64_t e = f->first; e < f->last; e++) {
        const struct sf_link *l = &m->links[m->entries[e].link];
        if (l->load >= l->capacity * (1 - FULL_SLACK)) choose_bottlenecked_at(m, m->entries[e].link);
    }
    return 0;
}

void sf_max_min_remove(struct sf_max_min *m, int32_t flow) {
    struct sf_flow *f = &m->flows[flow];
    f->is_active = 0;
    if (f->chosen_in != m->round && f->bottleneck >= 0) m->links[f->bottleneck].held_count--;
    f->bottleneck = SF_NO_BOTTLENECK;
    for (int64_t e = f->first; e < f->last; e++) {
        int32_t link = m->entries[e].link;
        struct sf_link *l = &m->links[link];
        touch(m, link);
        l->load -= m->entries[e].coef * f->rate;
        if (f->chosen_in != m->round) /* otherwise choose() has subtracted it */
            l->fixed -= m->entries[e].coef * f->rate;
        struct sf_member last = l->members[--l->count];
        if (last.entry != e) {
            l->members[m->entries[e].place] = last;
            m->entries[last.entry].place = m->entries[e].place;
        }
        choose_bottlenecked_at(m, link);
    }
}

/* ---- progressive filling ---- */

static int before(struct sf_level a, struct sf_level b) { return a.level != b.level ? a.level < b.level : a.id < b.id; }

static void sink(struct sf_max_min *m, int64_t at) {
    struct sf_level moving = m->heap[at];
    for (int64_t child; (child = 2 * at + 1) < m->heap_count; at = child) {
        if (child + 1 < m->heap_count && before(m->heap[child + 1], m->heap[child])) child++;
        if (!before(m->heap[child], moving)) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = moving;
}

static void settle(struct sf_max_min *m, int32_t flow, double level, int32_t bottleneck) {
    struct sf_flow *f = &m->flows[flow];
    f->is_settled = 1;
    f->next = f->weight * level;
    f->bottleneck = bottleneck;
    for (int64_t e = f->first; e < f->last; e++) {
        struct sf_link *l = &m->links[m->entries[e].link];
        l->residual -= m->entries[e].coef * f->next;
        l->weights -= m->entries[e].coef * f->weight;
        l->wanted -= m->entries[e].coef * f->max_rate;
        l->max_level = level; /* levels are ascending */
        l->open--;
    }
    if (bottleneck >= 0) m->links[bottleneck].held_level = level;
}

static double level_of(const struct sf_link *l) { return l->residual > 0 && l->weights > 0 ? l->residual / l->weights : 0; }

/* Returns true if the link would be full with every open flow at its max_rate. Other links cannot become full. */
static int may_fill(const struct sf_link *l) { return l->open && l->wanted >= l->residual - l->capacity * FULL_SLACK; }

/* Builds the heap of the limits of chosen flows: a flow's cap, or a link that may fill. Returns the number of flows without a
 * rate. */
static int32_t prepare_filling(struct sf_max_min *m) {
    for (int32_t i = 0; i < m->touched_count; i++) {
        struct sf_link *l = &m->links[m->touched[i]];
        l->residual = l->capacity - l->fixed;
        l->weights = l->wanted = l->max_level = 0;
        l->held_level = INFINITY;
        l->open = 0;
    }
    int32_t open = 0;
    m->heap_count = 0;
    for (int32_t i = 0; i < m->chosen_count; i++) {
        struct sf_flow *f = &m->flows[m->chosen[i]];
        f->is_settled = !f->is_active;
        if (!f->is_active) continue;
        open++;
        f->max_rate = f->cap;
        for (int64_t e = f->first; e < f->last; e++) {
            struct sf_link *l = &m->links[m->entries[e].link];
            l->weights += m->entries[e].coef * f->weight;
            l->open++;
            if (l->residual < f->max_rate * m->entries[e].coef) f->max_rate = fmax(l->residual, 0) / m->entries[e].coef;
        }
        if (f->max_rate == f->cap) m->heap[m->heap_count++] = (struct sf_level){f->cap / f->weight, ~m->chosen[i]};
        for (int64_t e = f->first; e < f->last; e++) m->links[m->entries[e].link].wanted += m->entries[e].coef * f->max_rate;
    }
    for (int32_t i = 0; i < m->touched_count; i++) {
        const struct sf_link *l = &m->links[m->touched[i]];
        if (may_fill(l)) m->heap[m->heap_count++] = (struct sf_level){level_of(l), m->touched[i]};
    }
    for (int64_t i = m->heap_count / 2; i-- > 0;) sink(m, i);
    return open;
}

/* Solves the rates of the chosen flows in the residual capacity: the level of all rises until a link is full or a cap is
 * reached, which settles the flows concerned. A link's level never falls while flows settle, so a key of the heap may be too
 * low. */
static void fill(struct sf_max_min *m) {
    int32_t open = prepare_filling(m);
    while (open) {
        struct sf_level lowest = m->heap[0];
        if (lowest.id < 0) {
            if (!m->flows[~lowest.id].is_settled) {
                settle(m, ~lowest.id, lowest.level, SF_AT_CAP);
                open--;
            }
        } else {
            struct sf_link *l = &m->links[lowest.id];
            double level = level_of(l);
            if (may_fill(l) && level > lowest.level * (1 + 1e-12)) {
                m->heap[0].level = level;
                sink(m, 0);
                continue;
            }
            for (int32_t i = 0; may_fill(l) && i < l->count; i++) {
                const struct sf_flow *f = &m->flows[l->members[i].flow];
                if (f->chosen_in == m->round && !f->is_settled) {
                    settle(m, l->members[i].flow, level, lowest.id);
                    open--;
                }
            }
        }
        m->heap[0] = m->heap[--m->heap_count];
        if (m->heap_count) sink(m, 0);
    }
}

/* Chooses flows whose current rate violates a condition: the bottleneck is not full any more or gives another flow more,
 * or they have more on a link than a flow whose bottleneck it is. Sets each link's load. Returns the number chosen. */
static int32_t choose_violated(struct sf_max_min *m) {
    int32_t links = m->touched_count, flows = m->chosen_count;
    double slack = m->tolerance > FULL_SLACK ? m->tolerance : FULL_SLACK;
    for (int32_t i = 0; i < links; i++) {
        int32_t link = m->touched[i];
        struct sf_link *l = &m->links[link];
        l->load = l->count ? l->capacity - l->residual : 0;
        if (!l->held_count && l->held_level == INFINITY) continue;
        int full = l->load >= l->capacity * (1 - slack);
        for (int32_t k = 0; k < l->count; k++) {
            const struct sf_flow *f = &m->flows[l->members[k].flow];
            if (f->chosen_in == m->round) continue;
            double level = f->rate / f->weight;
            if ((f->bottleneck == link && (!full || l->max_level > level * (1 + slack))) || level > l->held_level * (1 + slack))
                choose(m, l->members[k].flow);
        }
    }
    int32_t violated = m->chosen_count;
    for (int32_t i = flows; flows >= MIN_EARLY_CHOICE && i < violated; i++)
        for (int64_t e = m->flows[m->chosen[i]].first; e < m->flows[m->chosen[i]].last; e++)
            choose_bottlenecked_at(m, m->entries[e].link);
    return violated - flows;
}

/* Chooses all flows connected to the chosen ones by bottlenecks. */
static void choose_connected(struct sf_max_min *m) {
    for (int32_t i = 0; i < m->touched_count; i++) choose_bottlenecked_at(m, m->touched[i]);
}

void sf_max_min_solve(struct sf_max_min *m) {
    for (int32_t round = 1;; round++) {
        fill(m);
        if (!choose_violated(m)) return;
        if (round >= MAX_LOCAL_ROUNDS) choose_connected(m);
    }
}

void sf_max_min_commit(struct sf_max_min *m) {
    for (int32_t i = 0; i < m->chosen_count; i++) {
        struct sf_flow *f = &m->flows[m->chosen[i]];
        f->rate = f->is_active ? f->next : 0;
        if (f->is_active && f->bottleneck >= 0) m->links[f->bottleneck].held_count++;
    }
}
