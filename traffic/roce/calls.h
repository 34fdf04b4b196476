/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The last calls of a worker, and how far the present one is. One thread makes the calls, another one reports them. */
#ifndef NETFOLD_ROCE_CALLS_H
#define NETFOLD_ROCE_CALLS_H

#include "control.h"

struct nr_calls;

/* NULL: no memory. */
struct nr_calls *nr_calls_create(void);
void nr_calls_free(struct nr_calls *calls);

void nr_calls_begin(struct nr_calls *calls, size_t elements, enum nr_dtype dtype);
/* The present call is sent in this epoch, and lacks the sums of `messages`. */
void nr_calls_attempt(struct nr_calls *calls, uint64_t number, const struct nr_assignment *assignment, uint64_t messages);
void nr_calls_receive(struct nr_calls *calls);
/* `next`: number of the next call. `packets`: sent so far in all calls. */
void nr_calls_end(struct nr_calls *calls, enum nr_error error, uint64_t next, uint64_t packets);

void nr_calls_report(struct nr_calls *calls, struct na_report *report);
/* Returns how many of the last calls it has copied, the oldest first. */
int64_t nr_calls_copy(struct nr_calls *calls, struct nf_call_record *to, int64_t capacity);

/* Seconds of CLOCK_MONOTONIC. */
double nr_now(void);

#endif
