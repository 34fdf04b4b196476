/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What a core knows, for the course of calls (core.c), their beginnings (begin.c) and the workers' coming together (resume.c). */

#ifndef NETFOLD_CORE_STATE_H
#define NETFOLD_CORE_STATE_H

#include "call.h"
#include "predict.h"

struct nf_core {
    struct nf_assignment assignment; /* epoch 0: none yet */
    struct tree trees[NF_TREES_MAX];
    int64_t tree_count, packet_bytes;
    struct nf_call *first, *last; /* those that are not over, in their order */
    struct nf_call *kept;         /* those that are, and that others may ask for, in their order */
    int64_t number;               /* of the first that is not over: the results of all before are here */
    int64_t proven;               /* the results of all before are at all workers */
    int64_t depth, depth_most;    /* calls under way in this epoch, and in any */
    int64_t generation;
    int together;         /* whether the workers know of each other in which call they are */
    int used;             /* a call was begun in this epoch */
    int strange;          /* this worker was in no call, or left: it takes up the others' (if the assignment lets it) */
    int64_t came;         /* the call that it took up then: it has no results of those before */
    int64_t hand_next, hand_end;      /* calls that are still to be handed over */
    int64_t hand_holders[NUMBERS];
    struct nf_call joint; /* carries the resume chunk */
    struct nf_predictions predictions;
    struct nf_totals totals;
};

/* Ends all calls: one failed half-way. */
void core_fail(struct nf_core *core, int64_t status);

/* The same without a word to others: the first call with this status, those behind it as aborted. */
void core_end_calls(struct nf_core *core, int64_t status);

/* The results of all calls before `number` are at all workers. */
void core_prove(struct nf_core *core, int64_t number);

/* Lets the results go that nobody can ask for any more, and the calls themselves when their scales are learned. */
void core_forget_proven(struct nf_core *core);

#endif
