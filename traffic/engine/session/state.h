/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The state of a core. */

#ifndef NETFOLD_STATE_H
#define NETFOLD_STATE_H

#include "../call/call.h"
#include "../call/scale_predictor.h"
#include "../resume/resume.h"
#include "../transport/tree_state.h"
#include "../wire/call_numbers.h"
#include "call_record.h"
#include "report.h"

/* How a step of the session ends: it waits for results, another step follows, the calls need another epoch, or they fail. */
enum step_type { WAIT, AGAIN, NEW_EPOCH, FAIL };

struct step {
    enum step_type type;
    enum nf_status status; /* of the calls that FAIL */
};

static const struct step STEP_WAIT = {.type = WAIT}, STEP_AGAIN = {.type = AGAIN}, STEP_NEW_EPOCH = {.type = NEW_EPOCH};

static inline struct step step_fail(enum nf_status status) { return (struct step){FAIL, status}; }

/* The exchange that starts an epoch; its outcome holds until the next one. */
struct resume_exchange {
    int is_sent; /* the chunk of the current step */
    struct resume_terms terms;
    struct resume_number number;
    struct resume_votes votes, sums;
    struct resume_nonce_field nonce_field;
    int64_t nonce;
    int is_of_other_process; /* the votes of this epoch are summed without this process */
    struct resume_outcome outcome;
};

struct nf_core {
    struct nf_assignment assignment; /* epoch 0: none yet */
    struct tree trees[NF_TREES_MAX];
    int64_t tree_count, packet_bytes, generation;
    uint32_t short_result[NF_HEADER_BYTES / 4 + NF_LANES_MAX]; /* a result without lanes, with zeros */

    struct nf_call *first, *last; /* not finished, in their order */
    struct nf_call *retained;     /* finished, and other workers may need their results, in their order */
    int64_t next_call;            /* number of `first`: the results of all calls before are here */
    int64_t stable_until;         /* the results of all calls before are at all workers */
    int64_t depth, max_depth;     /* calls in flight in this epoch, and in any */
    int has_started_call;         /* in this epoch */

    int is_newcomer;       /* this worker has no call state: it was in no call, or was dropped */
    int64_t joined_at_call; /* the first call since then */
    int is_synchronized;   /* the resume exchange of this epoch is complete */
    struct resume_exchange resume;
    int64_t next_handover, handover_end; /* calls that are still to be handed over */

    struct nf_scale_predictor predictor;
    struct nf_totals totals;
    double now; /* of the last step */
    struct call_log log;
};

#endif
