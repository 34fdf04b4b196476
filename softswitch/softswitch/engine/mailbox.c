/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "mailbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int ss_mailbox_init(struct ss_mailbox *box) {
    memset(box, 0, sizeof *box);
    pthread_mutex_init(&box->lock, NULL);
    box->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return box->event_fd < 0 ? -errno : 0;
}

void ss_mailbox_free(struct ss_mailbox *box) {
    for (; box->count; box->count--) {
        free(box->frame[box->head].data);
        box->head = (box->head + 1) % SS_MAILBOX_FRAMES;
    }
    if (box->event_fd >= 0) close(box->event_fd);
    pthread_mutex_destroy(&box->lock);
}

void ss_mailbox_put(struct ss_mailbox *box, uint32_t port, const uint8_t *data, uint32_t length) {
    pthread_mutex_lock(&box->lock);
    uint8_t *copy = box->count < SS_MAILBOX_FRAMES ? malloc(length ? length : 1) : NULL;
    if (copy) {
        uint32_t at = (box->head + box->count++) % SS_MAILBOX_FRAMES;
        memcpy(copy, data, length);
        box->frame[at].data = copy;
        box->frame[at].length = length;
        box->frame[at].port = port;
        if (box->count == 1) eventfd_write(box->event_fd, 1);
    } else {
        box->lost++;
    }
    pthread_mutex_unlock(&box->lock);
}

int64_t ss_mailbox_take(struct ss_mailbox *box, uint32_t *port, uint8_t *data, uint32_t capacity) {
    int64_t length = -1;
    pthread_mutex_lock(&box->lock);
    if (box->count) {
        length = box->frame[box->head].length;
        if (port) *port = box->frame[box->head].port;
        if (length <= capacity) memcpy(data, box->frame[box->head].data, (size_t)length);
        free(box->frame[box->head].data);
        box->head = (box->head + 1) % SS_MAILBOX_FRAMES;
        box->count--;
        box->lost += length > capacity;
    }
    if (box->count == 0) {
        eventfd_t ignored;
        eventfd_read(box->event_fd, &ignored);
    }
    pthread_mutex_unlock(&box->lock);
    return length;
}

uint64_t ss_mailbox_lost(struct ss_mailbox *box) {
    pthread_mutex_lock(&box->lock);
    uint64_t lost = box->lost;
    pthread_mutex_unlock(&box->lock);
    return lost;
}
