/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A bounded queue of frames, from the data plane to the control plane or to another thread of it; an eventfd is readable while it
 * is not empty. */

#ifndef SS_MAILBOX_H
#define SS_MAILBOX_H

#include <pthread.h>
#include <stdint.h>

enum { SS_MAILBOX_FRAMES = 1024 };

struct ss_mailbox {
    pthread_mutex_t lock;
    int event_fd;
    uint32_t head, count;
    uint64_t lost; /* frames dropped at a full queue */
    struct {
        uint8_t *data;
        uint32_t length, port;
    } frame[SS_MAILBOX_FRAMES];
};

int ss_mailbox_init(struct ss_mailbox *box);
void ss_mailbox_free(struct ss_mailbox *box);

/* Appends a copy of the frame. `port`: where the switch received it. */
void ss_mailbox_put(struct ss_mailbox *box, uint32_t port, const uint8_t *data, uint32_t length);

/* Moves the oldest frame to `data`, its port to `port` unless NULL, and returns its length, or -1 if there is none. A frame
 * longer than `capacity` is discarded. */
int64_t ss_mailbox_take(struct ss_mailbox *box, uint32_t *port, uint8_t *data, uint32_t capacity);

uint64_t ss_mailbox_lost(struct ss_mailbox *box);

#endif
