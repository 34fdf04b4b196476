/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The last calls of a worker, which its agent writes to a file: at SIGUSR1, or when a call has failed. */

#ifndef NETFOLD_AGENT_DUMP_H
#define NETFOLD_AGENT_DUMP_H

#include <stdint.h>

#include "channel.h"
#include "messages.h"

/* Takes SIGUSR1 if the user wants dumps, and the program has no handler of its own. */
void na_take_dump_signal(void);

/* Whether the user wants dumps. */
int na_wants_dumps(void);

/* A dump is due whenever this has grown: with each signal, and each request. */
int na_dump_requests(void);
void na_request_dump(void);

/* `copy` gives at most `capacity` of the last calls. A message with fewer than NA_CALLS_MAX is the last one. */
void na_send_calls(struct na_channel *channel, int64_t (*copy)(void *context, struct nf_call_record *to, int64_t capacity),
                   void *context);

#endif
