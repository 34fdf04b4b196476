/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The lock of the core and of an I/O engine: a mutex that is fair between a data plane that takes it again at once and a
 * control operation that waits for it. Whoever wants the mutex goes through a turnstile, and keeps the turnstile until he
 * has the mutex: so the one who has just let it go stands behind the one who waits.
 */
#ifndef SS_LOCK_H
#define SS_LOCK_H

#include <pthread.h>

struct ss_lock { pthread_mutex_t turnstile, mutex; };

static inline void ss_lock_init(struct ss_lock *l) {
  pthread_mutex_init(&l->turnstile, NULL);
  pthread_mutex_init(&l->mutex, NULL);
}

static inline void ss_lock_destroy(struct ss_lock *l) {
  pthread_mutex_destroy(&l->turnstile);
  pthread_mutex_destroy(&l->mutex);
}

static inline void ss_lock_take(struct ss_lock *l) {
  pthread_mutex_lock(&l->turnstile);
  pthread_mutex_lock(&l->mutex);
  pthread_mutex_unlock(&l->turnstile);
}

static inline void ss_lock_leave(struct ss_lock *l) { pthread_mutex_unlock(&l->mutex); }

#endif
