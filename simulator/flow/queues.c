/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "queues.h"

#include <math.h>

#define MAX_RANDOM_LOAD 0.99 /* from this load on, streams with their bottleneck at the link determine its queue */

/* Returns the bytes that wait at a link: those that streams with their bottleneck there keep in it, and packets that arrive
 * together. */
static double queue_of(const struct sf_run *r, int32_t link) {
    const struct sf_link *l = &r->rates.links[link];
    double load = l->load / l->capacity, most = r->n->queue[link], standing = 0, window = 0;
    for (int32_t i = 0; load > MAX_RANDOM_LOAD && i < l->count; i++) {
        int32_t flow = l->members[i].flow;
        const struct sf_flow *f = &r->rates.flows[flow];
        if (f->bottleneck != link) continue;
        switch ((enum sf_flow_type)r->s->type[flow]) {
        case SF_ECN: /* a flow that was never marked has no standing queue: it sends at the rate of its slow start */
            if (r->streams[flow].pace < INFINITY || flow >= r->s->flows) standing = fmax(standing, r->n->marking);
            break;
        case SF_LOSS_BASED:
            standing = fmax(standing, SF_LOSS_BASED_FILL * most);
            break;
        case SF_FIXED_WINDOW:
            window += fmax(0, r->s->window[flow] - f->rate * 2 * r->s->delay[flow]) * l->members[i].coef;
            break;
        case SF_NO_QUEUE:
            break;
        }
    }
    load = fmin(load, MAX_RANDOM_LOAD);
    return fmin(most, fmax(fmax(standing, window), load / (2 * (1 - load)) * r->n->segment));
}

static void account(struct sf_run *r, int64_t link) {
    r->queue_area[link] += r->queue[link] * (r->now - r->queue_since[link]);
    r->queue_since[link] = r->now;
}

void sf_queue_update(struct sf_run *r, int32_t link) {
    double queue = queue_of(r, link);
    account(r, link);
    r->queue[link] = queue;
    if (queue > r->n->queue_max[link]) r->n->queue_max[link] = queue;
}

double sf_queue_delay(const struct sf_run *r, int64_t stream) {
    double seconds = 0;
    for (int64_t e = r->s->rows[stream]; e < r->s->rows[stream + 1]; e++)
        seconds += r->queue[r->s->links[e]] / r->n->capacity[r->s->links[e]];
    return seconds;
}

void sf_queues_close(struct sf_run *r) {
    for (int64_t link = 0; link < r->n->links; link++) {
        account(r, link);
        r->n->queue_mean[link] = r->now > 0 ? r->queue_area[link] / r->now : 0;
    }
}
