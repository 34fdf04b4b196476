/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A controller of one RoCE job, in messages (traffic/agent/messages.h), without plans or switches. A test sets its fields before it
 * starts, and reads them when its thread has ended. */
#ifndef FAKE_CONTROLLER_H
#define FAKE_CONTROLLER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/channel.h"
#include "agent/messages.h"

enum { MOST = 8, LANES = 256 }; /* workers; of a packet */
enum departure { FORBIDDEN, FINAL, CONTINUE };

extern struct fake_controller {
    int workers, trees, window, epoch, listeners[MOST];
    struct na_channel *channels[MOST];
    const char *numerics, *folder;
    struct na_queue_pairs ends[MOST];
    bool known[MOST], gave, linked;
    int left, send_again; /* workers that left; with how many of them what was lost is sent again */
    bool has_left[MOST];
    int ends_after; /* words of life, when all are connected: then the job is over for all but the first */
    bool cut; /* the first worker's agent ends when that leaves */
    enum departure departure; /* of the last worker, while others stay */
    uint64_t limit; /* calls that it has finished */
    int present; /* workers of the epoch: the first ones */
    bool awaits_leave, is_awaiting; /* no epoch begins before a worker has left; one was requested */
    bool releases; /* the host that is held, when a worker has left */
    int short_epoch; /* the last worker does not hear of its ring: it ends before */
    pthread_t thread;
} control;

/* Listens at a path for each worker, and serves them in a thread until all have gone. */
void fake_controller_start(int workers, int trees, int window, const char *numerics);
void fake_controller_path(char *path, size_t room, int worker);

#endif
