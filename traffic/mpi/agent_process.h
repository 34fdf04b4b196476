/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The agent's process and the stream to it. */

#ifndef NETFOLD_MPI_AGENT_PROCESS_H
#define NETFOLD_MPI_AGENT_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A packet of the stream. `text` ends with a zero. */
struct nm_packet {
    int64_t type;
    const char *text;      /* what follows the type */
    const void *bytes;     /* all of it */
    size_t size;
    const int32_t *sockets;
    size_t socket_count;
};

struct nm_agent;

/* NULL: `errno`. */
struct nm_agent *nm_agent_start(void);

/* 0, or -1: the agent is gone. */
int nm_agent_send(struct nm_agent *a, const void *message, size_t size);
int nm_agent_send_text(struct nm_agent *a, int64_t type, const char *text);

/* Waits at most `seconds`. 1: a packet, valid until the next call. 0: none yet. -1: the agent is gone. */
int nm_agent_receive(struct nm_agent *a, struct nm_packet *packet, double seconds);

/* Ends the stream, and waits for the process, whose messages are dropped; kills it after `seconds`. */
void nm_agent_end(struct nm_agent *a, double seconds);

#endif
