/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A bounded queue of frames from the data plane to the control plane, with an eventfd that says when to look. */

#ifndef NETFOLD_MAILBOX_H
#define NETFOLD_MAILBOX_H

#include <pthread.h>
#include <stdint.h>

enum { MAILBOX_FRAMES = 1024 };

struct mailbox {
    pthread_mutex_t lock;
    int event_fd;
    uint32_t head, count;
    uint64_t lost; /* frames that came while the queue was full */
    struct {
        uint8_t *data;
        uint32_t length;
    } frame[MAILBOX_FRAMES];
};

int mailbox_init(struct mailbox *box);
void mailbox_free(struct mailbox *box);

/* Appends a copy of the frame. */
void mailbox_put(struct mailbox *box, const uint8_t *data, uint32_t length);

/* Moves the oldest frame to `data` and returns its length; -1 when there is none. One longer than `room` is lost. */
int64_t mailbox_take(struct mailbox *box, uint8_t *data, uint32_t room);

uint64_t mailbox_lost(struct mailbox *box);

#endif
