/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "in_flight.h"

void in_flight_remove(struct tree *t, int32_t channel) {
    struct channel *c = &t->channels[channel];
    struct flight *f = flight_of(t, channel);
    if (c->previous == NO_CHANNEL)
        f->oldest = c->next;
    else
        t->channels[c->previous].next = c->next;
    if (c->next == NO_CHANNEL)
        f->newest = c->previous;
    else
        t->channels[c->next].previous = c->previous;
}

void in_flight_append(struct tree *t, int32_t channel, double now) {
    struct channel *c = &t->channels[channel];
    struct flight *f = flight_of(t, channel);
    c->sent_at = now;
    c->previous = f->newest;
    c->next = NO_CHANNEL;
    if (f->newest == NO_CHANNEL)
        f->oldest = channel;
    else
        t->channels[f->newest].next = channel;
    f->newest = channel;
}
