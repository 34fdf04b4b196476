/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A job's iterations and their buckets: ready, carried by all channels, reduced. */
#ifndef SF_JOBS_H
#define SF_JOBS_H

#include "state.h"

#pragma GCC visibility push(hidden)

/* A timer has expired; `timer` counts over all jobs. */
void sf_job_on_timer(struct sf_run *r, int32_t timer);

/* A channel has carried its bucket. Returns 1 if it continues with another bucket, 0 if it is idle. */
int sf_job_on_carried(struct sf_run *r, int64_t channel);

#pragma GCC visibility pop

#endif
