/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The lock of the core and of the I/O engine. Fair mutex: a thread holds the turnstile until it owns the mutex, so the data
 * plane, which releases the mutex and acquires it at once, queues behind a waiting control operation.
 */
#ifndef SS_LOCK_H
#define SS_LOCK_H

#include <pthread.h>

struct ss_lock {
    pthread_mutex_t turnstile, mutex;
};

static inline void ss_lock_init(struct ss_lock *l) {
    pthread_mutex_init(&l->turnstile, NULL);
    pthread_mutex_init(&l->mutex, NULL);
}

static inline void ss_lock_destroy(struct ss_lock *l) {
    pthread_mutex_destroy(&l->turnstile);
    pthread_mutex_destroy(&l->mutex);
}

static inline void ss_lock_acquire(struct ss_lock *l) {
    pthread_mutex_lock(&l->turnstile);
    pthread_mutex_lock(&l->mutex);
    pthread_mutex_unlock(&l->turnstile);
}

static inline void ss_lock_release(struct ss_lock *l) { pthread_mutex_unlock(&l->mutex); }

#endif
