/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The resume exchange tells the workers of a new epoch in which calls they are, docs/reference/protocol.md, sections 5.3 and
 * 5.6. It is pure: votes go in; the calls to hand over, their holders and the next call come out. All workers receive the same
 * sums, so all conclude alike.
 *
 * Where newcomers are allowed, the greatest call number of all comes first, one byte a chunk: exponents are merged by maximum.
 * Then each worker votes for the first call whose result it lacks. */

#ifndef NETFOLD_RESUME_H
#define NETFOLD_RESUME_H

#include <stdint.h>

#include "../wire/call_numbers.h"
#include "../wire/header.h"

/* The terms are equal at all workers of the epoch. */
struct resume_terms {
    int64_t workers;
    int64_t depth; /* calls that may be in flight */
    int has_quorum, has_newcomers;
    int has_scatters; /* there may be ready workers; no newcomers then */
};

/* The state of this worker. */
struct resume_worker {
    int64_t next_call; /* the first call whose result it lacks */
    int64_t first_call; /* it has no results of calls before this one */
    int is_newcomer; /* it has no call state: `next_call` means nothing */
    int was_started; /* `next_call` was started in an earlier epoch */
    int is_ready; /* `next_call` is a scatter that lacks the closing result alone, E9 */
};

/* The bits of the resume chunk's lanes that have a worker's nonce: no other worker adds to them. The mask is 0 where there is
 * no room. */
struct resume_nonce_field {
    int64_t lane;
    int shift;
    uint32_t mask;
};

/* The search for the greatest call number. */
struct resume_number {
    int64_t byte; /* CALL_ID_BYTES: complete */
    int64_t byte_sent, byte_max;
    int64_t newest_call;
};

/* The votes of this worker in the resume chunk, or the sums over all workers. */
struct resume_votes {
    int64_t calls[3 * CALL_MODULUS]; /* workers, by the call that they vote for (vote_lane) */
    int64_t missing[CALL_MODULUS]; /* by call modulo: workers past it that do not have its result */
    int64_t chunks[CALL_MODULUS]; /* by call modulo: chunks of its retained results */
    int64_t newcomers;
};

struct resume_outcome {
    int is_desync; /* the workers are in calls that cannot be reconciled */
    int is_ready_finished; /* this worker is ready and finishes its call, E10 */
    int64_t first, end; /* calls to hand over; if is_desync, the range of votes */
    int64_t next_call; /* of this worker: the newest one for a newcomer */
    int64_t first_call;
    int64_t stable_until; /* all workers have the results of the calls before */
    /* These are indexed by the call less `first`. */
    int64_t holders[NF_MAX_CALLS_IN_FLIGHT + 1]; /* workers that have the result */
    int64_t contributors[NF_MAX_CALLS_IN_FLIGHT + 1]; /* workers that are in the call */
    int64_t chunks[NF_MAX_CALLS_IN_FLIGHT + 1]; /* of its handover, where newcomers are allowed */
};

/* Determines the next byte of the number that this worker sends. */
void resume_send_call_byte(struct resume_number *n, const struct resume_worker *w);

/* Takes the maximum of all workers. */
void resume_take_call_byte(struct resume_number *n);

/* Returns the votes without the chunks, which the caller adds by resume_offer. */
struct resume_votes resume_vote(const struct resume_terms *terms, const struct resume_worker *w);

/* Adds that this worker has a retained result. */
void resume_offer(struct resume_votes *v, int64_t call, int64_t chunks);

struct resume_outcome resume_evaluate_votes(const struct resume_terms *terms, const struct resume_worker *w,
                                            int64_t newest_call, const struct resume_votes *sums);

/* Writes or reads the lanes of the resume chunk; `lanes` is their number. */
void resume_write_votes(const struct resume_terms *terms, const struct resume_votes *v, struct header *h);
void resume_read_votes(const struct resume_terms *terms, struct resume_votes *sums, struct header *h, int64_t lanes);

struct resume_nonce_field resume_nonce_field(const struct resume_terms *terms, int64_t lanes, int64_t rank);

/* Adds the nonce of this process to the lanes of the resume chunk. */
void resume_write_nonce(struct resume_nonce_field field, int64_t nonce, struct header *h);

/* Returns whether the sum is one to which this process contributed. If not, the nodes took its packets for duplicates of
 * another process's, and their results are those of that one's calls. */
int resume_has_nonce(struct resume_nonce_field field, int64_t nonce, struct header *h);

#endif
