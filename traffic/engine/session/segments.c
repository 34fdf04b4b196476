/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "segments.h"

#include <stdlib.h>

#include "../transport/tree.h"

enum nf_status schedule_segment(struct tree *t, const struct segment *of) {
    struct segment *s = malloc(sizeof *s);
    if (!s) return NF_NO_MEMORY;
    *s = *of;
    if (tree_append(t, s)) return NF_PENDING;
    free(s);
    return NF_EXHAUSTED;
}

int has_segment(const struct nf_core *core, const void *owner) {
    for (int64_t i = 0; i < core->tree_count; i++)
        for (int stream = 0; stream < STREAMS; stream++)
            for (const struct segment *s = core->trees[i].streams[stream].first; s; s = s->next)
                if (s->owner == owner) return 1;
    return 0;
}
