/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "internal.h"

void ss_lock_init(struct ss_lock *l) {
  pthread_mutex_init(&l->mutex, NULL);
  atomic_init(&l->waiting, 0);
}

void ss_lock_control(struct ss_lock *l) {
  atomic_fetch_add(&l->waiting, 1);
  pthread_mutex_lock(&l->mutex);
  atomic_fetch_sub(&l->waiting, 1);
}

/* A mutex alone would let a busy data plane take itself again and again; the bound keeps a storm of control operations
 * from stopping it. */
void ss_lock_data(struct ss_lock *l) {
  for (int i = 0; i < 64 && atomic_load_explicit(&l->waiting, memory_order_relaxed) > 0; i++) sched_yield();
  pthread_mutex_lock(&l->mutex);
}

void ss_unlock(struct ss_lock *l) { pthread_mutex_unlock(&l->mutex); }
