/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What happens next: a heap with four children a node. There is one event for each line on which something travels and one
 * or two for each end, never one for each packet, so the heap of a hundred hosts fits into a processor's first cache; that is
 * why it is no calendar. Equal times come in the order in which they were put in. */

#ifndef NETFOLD_EVENTS_H
#define NETFOLD_EVENTS_H

#include <stdint.h>

typedef int64_t np_time; /* picoseconds */

#define NP_NEVER INT64_MAX

enum np_what { NP_LINE, NP_WORKER, NP_SENDER, NP_RECEIVER, NP_FLOWS };

struct np_event {
    np_time at;
    uint32_t order;
    uint32_t what; /* enum np_what in the upper three bits, whose below */
};

enum { NP_WHOSE_BITS = 29 };

struct np_events {
    struct np_event *heap;
    int64_t count, room;
    uint32_t order;
};

/* When something that is put off again and again is due: an event that comes too early puts itself in once more. */
struct np_timer {
    np_time due, queued;
};

/* -1: no memory. */
int np_events_put(struct np_events *e, np_time at, enum np_what what, uint32_t whose);
/* The first one goes; or it is put off to `at` in the same step. */
void np_events_pop(struct np_events *e);
void np_events_put_off(struct np_events *e, np_time at);

void np_timer_clear(struct np_timer *t);
int np_timer_set(struct np_events *e, struct np_timer *t, np_time due, enum np_what what, uint32_t whose);
/* Whether it is due now that its event is there; -1: no memory. */
int np_timer_rings(struct np_events *e, struct np_timer *t, np_time now, enum np_what what, uint32_t whose);

#endif
