/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A worker's end of the stream to its agent (messages.h): a socket, or a serial port. Threads may send at the same time; one of
 * them receives. */

#ifndef NETFOLD_AGENT_CHANNEL_H
#define NETFOLD_AGENT_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

struct na_channel;

/* Valid until the next message is received. */
struct na_message {
    uint32_t type;
    size_t size; /* of the body */
    const void *body;
    const char *text; /* the body, which ends with a zero */
    const int32_t *sockets;
    size_t socket_count;
};

/* Takes the descriptor. NULL: no memory. */
struct na_channel *na_channel_open(int stream);
void na_channel_close(struct na_channel *channel);

/* 0, or -1: the agent is gone, or does not read. Drops what comes after NA_LEAVE. */
int na_send(struct na_channel *channel, uint32_t type, const void *body, size_t size);
int na_send_text(struct na_channel *channel, uint32_t type, const char *text);

/* Nothing follows from this end. */
void na_channel_finish(struct na_channel *channel);

/* Waits at most `seconds`. 1: a message. 0: none yet. -1: the agent is gone, or sent what is no message. */
int na_receive(struct na_channel *channel, struct na_message *message, double seconds);

/* Readable when there is something to receive. */
int na_channel_descriptor(const struct na_channel *channel);

#endif
