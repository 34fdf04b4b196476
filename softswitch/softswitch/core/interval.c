/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Entries with range fields that share the rest of their key: a treap (Seidel, Aragon, Algorithmica 1996) by the low end of
 * the first range. A subtree stores its highest end and its best priority, so a search prunes what cannot win. */
#include "internal.h"

static struct ss_interval *node(const struct ss_table *t, uint32_t handle) { return t->entries[handle]->interval; }

static int left_of(const struct ss_table *t, uint32_t a, uint32_t b) {
    uint64_t lo_a = node(t, a)->bounds[0], lo_b = node(t, b)->bounds[0];
    return lo_a != lo_b ? lo_a < lo_b : a < b;
}

/* Recomputes a subtree's maxima from its root and children. */
static void sum_up(const struct ss_table *t, uint32_t root) {
    struct ss_interval *n = node(t, root);
    n->top = n->bounds[1];
    n->best = t->entries[root]->priority;
    const uint32_t children[2] = {n->left, n->right};
    for (int i = 0; i < 2; i++) {
        if (children[i] == SS_NONE) continue;
        const struct ss_interval *c = node(t, children[i]);
        if (c->top > n->top) n->top = c->top;
        if (c->best > n->best) n->best = c->best;
    }
}

/* Splits a subtree at `handle` into the nodes left and right of it. */
static void split(const struct ss_table *t, uint32_t root, uint32_t handle, uint32_t *left, uint32_t *right) {
    if (root == SS_NONE) {
        *left = *right = SS_NONE;
        return;
    }
    if (left_of(t, root, handle)) {
        split(t, node(t, root)->right, handle, &node(t, root)->right, right);
        *left = root;
    } else {
        split(t, node(t, root)->left, handle, left, &node(t, root)->left);
        *right = root;
    }
    sum_up(t, root);
}

static uint32_t join(const struct ss_table *t, uint32_t left, uint32_t right) {
    if (left == SS_NONE) return right;
    if (right == SS_NONE) return left;
    uint32_t root = node(t, left)->rank > node(t, right)->rank ? left : right;
    if (root == left)
        node(t, left)->right = join(t, node(t, left)->right, right);
    else
        node(t, right)->left = join(t, left, node(t, right)->left);
    sum_up(t, root);
    return root;
}

uint32_t ss_interval_insert(const struct ss_table *t, uint32_t root, uint32_t handle) {
    struct ss_interval *n = node(t, handle);
    if (root != SS_NONE && node(t, root)->rank >= n->rank) {
        uint32_t *child = left_of(t, handle, root) ? &node(t, root)->left : &node(t, root)->right;
        *child = ss_interval_insert(t, *child, handle);
        sum_up(t, root);
        return root;
    }
    split(t, root, handle, &n->left, &n->right);
    sum_up(t, handle);
    return handle;
}

uint32_t ss_interval_remove(const struct ss_table *t, uint32_t root, uint32_t handle) {
    if (root == handle) return join(t, node(t, root)->left, node(t, root)->right);
    uint32_t *child = left_of(t, handle, root) ? &node(t, root)->left : &node(t, root)->right;
    *child = ss_interval_remove(t, *child, handle);
    sum_up(t, root);
    return root;
}

static int better(const struct ss_entry *a, const struct ss_entry *b) {
    return !b || a->priority > b->priority || (a->priority == b->priority && a->order < b->order);
}

static struct ss_entry *search(const struct ss_table *t, uint32_t root, const uint64_t *values, uint32_t ranges,
                               struct ss_entry *found) {
    if (root == SS_NONE) return found;
    const struct ss_interval *n = node(t, root);
    if (n->top < values[0] || (found && n->best < found->priority)) return found;
    found = search(t, n->left, values, ranges, found);
    if (n->bounds[0] > values[0]) return found;
    unsigned in = 1;
    for (uint32_t r = 0; r < ranges; r++) in &= values[r] >= n->bounds[2 * r] && values[r] <= n->bounds[2 * r + 1];
    if (in && better(t->entries[root], found)) found = t->entries[root];
    return search(t, n->right, values, ranges, found);
}

struct ss_entry *ss_interval_best(const struct ss_table *t, uint32_t root, const uint64_t *values, uint32_t ranges) {
    return search(t, root, values, ranges, NULL);
}
