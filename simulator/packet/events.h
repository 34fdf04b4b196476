/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The event queue: a heap with four children a node. There is one event for each link with packets on it and one or two for
 * each flow end, never one for each packet, so the heap of a hundred hosts fits into the L1 cache; a calendar queue would not be
 * faster. Events at the same time are handled in the order in which they were added. */

#ifndef NETFOLD_EVENTS_H
#define NETFOLD_EVENTS_H

#include <stdint.h>

typedef int64_t np_time; /* picoseconds */

#define NP_NEVER INT64_MAX

enum np_event_type { NP_LINK, NP_WORKER, NP_SENDER, NP_RECEIVER, NP_FLOWS };

struct np_event {
    np_time at;
    uint32_t order;
    uint32_t what; /* enum np_event_type in the upper three bits, its owner below */
};

enum { NP_OWNER_BITS = 29 };

struct np_events {
    struct np_event *heap;
    int64_t count, capacity;
    uint32_t order;
};

/* A timer that is postponed often: its event is added again if it is early. */
struct np_timer {
    np_time due, queued;
};

/* Returns -1 if there is no memory. */
int np_events_put(struct np_events *e, np_time at, enum np_event_type what, uint32_t owner_id);
/* Removes the first event; or postpones it to `at` in one step. */
void np_events_pop(struct np_events *e);
void np_events_postpone_first(struct np_events *e, np_time at);

void np_timer_clear(struct np_timer *t);
int np_timer_set(struct np_events *e, struct np_timer *t, np_time due, enum np_event_type what, uint32_t owner_id);
/* Handles the event of the timer; returns whether the timer is due, or -1 if there is no memory. */
int np_timer_fires(struct np_events *e, struct np_timer *t, np_time now, enum np_event_type what, uint32_t owner_id);

#endif
