/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "departures.h"

#include "calls.h"
#include "segments.h"

/* Returns whether needed results are still to be handed over in this epoch. */
static int is_handover_incomplete(const struct nf_core *core) {
    return !core->is_synchronized || core->next_handover < core->handover_end || has_segment(core, &core->resume) ||
           core->first->progress.state == CALL_HANDOVER;
}

/* Decides how the first call continues after workers have left. A call that one of them has finished has all contributions: it
 * ends as if the worker were there. */
struct step departures_step(struct nf_core *core) {
    const struct nf_departures *d = &core->assignment.departures;
    if (!d->is_limited || !core->first) return STEP_WAIT;
    if (is_handover_incomplete(core)) return d->in_epoch ? STEP_NEW_EPOCH : STEP_WAIT;
    int is_of_all = core->first->rows.form != NF_SCATTER || core->next_call < d->call_limit;
    if (core->first->progress.state == CALL_CLOSING && is_of_all) {
        calls_finish_closing(core);
        return STEP_AGAIN;
    }
    if (core->next_call < d->call_limit) return STEP_WAIT;
    return d->is_final ? step_fail(NF_WORKERS_LEFT) : STEP_NEW_EPOCH;
}
