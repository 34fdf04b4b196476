/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Batches of UDP datagrams between sockets and a core. */

#ifndef NETFOLD_SOCKETS_H
#define NETFOLD_SOCKETS_H

#include <poll.h>

#include "core.h"

struct sockets;

struct sockets *sockets_create(void);
void sockets_destroy(struct sockets *s);

/* Takes the descriptors over. 0, or an errno. */
int sockets_open(struct sockets *s, const int32_t *fds, int64_t count, int64_t lanes);
void sockets_close(struct sockets *s);

/* Gives the core what has come, without waiting; how many. `now`: when. */
int64_t sockets_receive(struct sockets *s, struct nf_core *core, double now);

/* Whether the last call may have left something. */
int sockets_more(const struct sockets *s);

/* Sends what the core has to send, as much as the sockets take. */
void sockets_send(struct sockets *s, struct nf_core *core, double now);

/* Whether a socket took less than it was given. */
int sockets_blocked(const struct sockets *s);

/* Fills in what to wait for; how many. `polled` has room for NF_TREES_MAX. */
int sockets_poll(const struct sockets *s, struct pollfd *polled);

/* The errno of a socket that failed, else 0. */
int sockets_error(const struct sockets *s);

#endif
