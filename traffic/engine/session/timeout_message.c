/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "timeout_message.h"

#include <stdio.h>

static int64_t lowest_missing(const struct tree *t, const struct segment *s) {
    int64_t lowest = -1;
    for (int64_t k = 0; k < t->channel_count; k++) {
        const struct channel *c = &t->channels[k];
        int64_t chunk = c->next_place - s->base;
        if (c->is_in_flight && c->segment == s && (lowest < 0 || chunk < lowest)) lowest = chunk;
    }
    return lowest;
}

void timeout_message_write(const struct nf_core *core, char *to, size_t capacity) {
    size_t used = 0;
    for (int64_t i = 0; i < core->tree_count && used < capacity; i++) {
        const struct tree *t = &core->trees[i];
        const struct segment *s = NULL;
        for (int stream = 0; stream < STREAMS && !s; stream++) s = t->streams[stream].first;
        if (!s) continue;
        int64_t lowest = lowest_missing(t, s);
        char name[24];
        snprintf(name, sizeof name, "%lld", (long long)lowest);
        int wrote = snprintf(to + used, capacity - used,
                             "%stree %lld (to %s): %lld of %lld results missing, %lld in flight, the first is chunk %s",
                             used ? "; " : "", (long long)t->spec.tree, t->spec.destination, (long long)s->remaining,
                             (long long)s->count, (long long)t->in_flight, lowest < 0 ? "none" : name);
        if (wrote < 0) return;
        used += (size_t)wrote;
    }
}
