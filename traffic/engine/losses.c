/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "losses.h"

enum {
    TAIL_MOST = 4, /* more chunks under way are no tail */
    TAIL_FACTOR = 4
};

int losses_overtaken(const struct tree *t) {
    return t->channels[t->oldest].sent_at < t->newest_back - nf_rtt_reordering(&t->rtt, &t->timing);
}

/* RFC 8985's tail loss probe: after two round trips of silence the oldest chunk goes again, once. Where the timeout is not
 * much longer than that, it would only ask those who wait for slower workers; and so it would where many chunks are under
 * way and none comes back, as a loss holds up one channel. */
static double tail_probe_at(const struct tree *t) {
    if (t->tail_probed || t->oldest == NOBODY || t->under_way > TAIL_MOST || t->rtt.smoothed == 0) return NF_UNKNOWN;
    if (nf_rtt_timeout(&t->rtt, &t->timing) < TAIL_FACTOR * t->rtt.smoothed) return NF_UNKNOWN;
    return t->active_at + 2 * t->rtt.smoothed + t->timing.least_reordering;
}

/* Of the oldest chunk, or of the probe that went for it. */
static double timeout_at(const struct tree *t) {
    double asked = t->channels[t->oldest].sent_at;
    return (t->probed_at > asked ? t->probed_at : asked) + nf_rtt_timeout(&t->rtt, &t->timing);
}

/* A chunk that went again is back, what went before it is not, and for a round trip nothing else came: then that is lost, too.
 * Where a slow worker was waited for, its other chunks come meanwhile. */
static double lost_at(const struct tree *t) {
    double last = t->again_back - nf_rtt_reordering(&t->rtt, &t->timing);
    if (t->again_back <= t->newest_back || t->channels[t->oldest].sent_at >= last) return NF_UNKNOWN;
    return t->active_at + t->rtt.smoothed + t->timing.least_reordering;
}

/* What went more than a little before a chunk that is back, and silence: after that long the oldest goes again. One is
 * enough: what is lost besides is overtaken by what goes next, or missed when the answer to the probe is here. And most silence is
 * another worker's, which no probe ends. */
void losses_look(struct tree *t, double now) {
    if (t->oldest == NOBODY) return;
    if (now >= lost_at(t)) t->newest_back = t->again_back;
    if (losses_overtaken(t)) {
        if (now - t->shrank_at > t->rtt.smoothed) {
            t->shrank_at = now;
            nf_window_loss(&t->window);
        }
        return;
    }
    if (now >= tail_probe_at(t)) {
        t->tail_probed = 1;
        t->probe_due = 1;
        t->probes++;
    }
    if (now >= timeout_at(t)) {
        t->probed_at = now;
        t->probe_due = 1;
        t->probes++;
        nf_rtt_expired(&t->rtt, &t->timing);
    }
}

int losses_lacking(const struct tree *t) {
    return t->oldest != NOBODY && (t->probe_due || losses_overtaken(t));
}

double losses_next(const struct tree *t) {
    double timeout = timeout_at(t), tail = tail_probe_at(t), lost = lost_at(t);
    double next = tail < timeout ? tail : timeout;
    return lost < next ? lost : next;
}
