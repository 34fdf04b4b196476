/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The ring of events for the control plane. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

static int push(struct ss_switch *sw, const struct ss_event *event) {
    if (sw->ring_count == SS_RING) return -1;
    struct ss_event *e = &sw->ring[(sw->ring_at + sw->ring_count) % SS_RING];
    *e = *event;
    if (sw->ring_count++ == 0) {
        uint64_t one = 1;
        if (write(sw->event_fd, &one, sizeof one) < 0) { /* the counter is at its limit, hence readable */
        }
    }
    return 0;
}

void ss_event_push(struct ss_switch *sw, uint32_t kind, uint32_t object, uint32_t handle, const uint8_t *data, uint32_t bytes) {
    struct ss_switch *first = sw->shards[0];
    uint8_t *copy = bytes ? malloc(bytes) : NULL;
    if (bytes && copy) memcpy(copy, data, bytes);
    struct ss_event event = {kind, object, handle, bytes, sw->generation, sw->last_ns, copy};
    pthread_mutex_lock(&first->ring_lock);
    int rc = bytes && !copy ? -1 : push(first, &event);
    pthread_mutex_unlock(&first->ring_lock);
    if (rc == 0) return;
    free(copy);
    sw->stats.events_lost++;
}

int ss_event_take(struct ss_switch *sw, struct ss_event *out, uint8_t *data) {
    int rc = -1;
    pthread_mutex_lock(&sw->ring_lock);
    if (sw->ring_count) {
        struct ss_event *e = &sw->ring[sw->ring_at];
        *out = *e;
        rc = (int)e->bytes;
        if (e->bytes) memcpy(data, e->data, e->bytes);
        free(e->data);
        e->data = out->data = NULL;
        sw->ring_at = (sw->ring_at + 1) % SS_RING;
        sw->ring_count--;
    }
    if (sw->ring_count == 0) {
        uint64_t seen;
        if (read(sw->event_fd, &seen, sizeof seen) < 0) { /* already zero */
        }
    }
    pthread_mutex_unlock(&sw->ring_lock);
    return rc;
}

int ss_event_fd(const struct ss_switch *sw) { return sw->event_fd; }
