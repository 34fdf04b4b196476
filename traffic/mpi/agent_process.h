/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The agent's process and the channel to it. */

#ifndef NETFOLD_MPI_AGENT_PROCESS_H
#define NETFOLD_MPI_AGENT_PROCESS_H

#include "../agent/channel.h"

struct nm_agent;

/* NULL: `errno`. */
struct nm_agent *nm_agent_start(void);

struct na_channel *nm_agent_channel(struct nm_agent *a);

/* Ends the stream, and waits for the process, whose messages are dropped; kills it after `seconds`. */
void nm_agent_end(struct nm_agent *a, double seconds);

#endif
