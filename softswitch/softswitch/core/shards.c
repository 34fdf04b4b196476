/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Control operations stop the threads of the data plane: each holds its lock in a batch, and these take all, in order. */
#include "internal.h"

void ss_pipeline_lock(const struct ss_pipeline *pl) {
    for (uint32_t i = 0; i < pl->threads; i++) ss_lock_acquire(pl->shards[i].lock);
}

void ss_pipeline_unlock(const struct ss_pipeline *pl) {
    for (uint32_t i = pl->threads; i-- > 0;) ss_lock_release(pl->shards[i].lock);
}

void ss_switch_lock(const struct ss_switch *sw) {
    for (uint32_t i = 0; i < sw->threads; i++) ss_lock_acquire(&sw->shards[i]->lock);
}

void ss_switch_unlock(const struct ss_switch *sw) {
    for (uint32_t i = sw->threads; i-- > 0;) ss_lock_release(&sw->shards[i]->lock);
}
