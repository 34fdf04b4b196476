/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The ring of events for the control plane. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

void ss_event_push(struct ss_switch *sw, uint32_t kind, uint32_t object, uint32_t handle, const uint8_t *data, uint32_t bytes) {
    uint8_t *copy = bytes ? malloc(bytes) : NULL;
    if (sw->ring_count == SS_RING || (bytes && !copy)) {
        free(copy);
        sw->stats.events_lost++;
        return;
    }
    if (bytes) memcpy(copy, data, bytes);
    struct ss_event *e = &sw->ring[(sw->ring_at + sw->ring_count) % SS_RING];
    *e = (struct ss_event){kind, object, handle, bytes, sw->generation, sw->last_ns, copy};
    if (sw->ring_count++ == 0) {
        uint64_t one = 1;
        if (write(sw->event_fd, &one, sizeof one) < 0) { /* the counter is at its limit, hence readable */
        }
    }
}

int ss_event_take(struct ss_switch *sw, struct ss_event *out, uint8_t *data) {
    int rc = -1;
    ss_lock_acquire(&sw->lock);
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
    ss_lock_release(&sw->lock);
    return rc;
}

int ss_event_fd(const struct ss_switch *sw) { return sw->event_fd; }
