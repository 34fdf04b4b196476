/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Moves packets between the UDP sockets of a worker, or its link (link.h), and its core. */

#ifndef NETFOLD_SOCKETS_H
#define NETFOLD_SOCKETS_H

#include <poll.h>

#include "../session/core.h"
#include "link.h"

struct sockets;

struct sockets *sockets_create(void);
void sockets_destroy(struct sockets *s);

/* Takes ownership of the descriptors. Returns 0 or an errno. */
int sockets_open(struct sockets *s, const int32_t *fds, int64_t count, int64_t lanes);

/* Uses `port` on a link in place of UDP sockets; endpoint i is peers[i]. Returns 0 or an errno. */
int sockets_open_link(struct sockets *s, const struct nf_link_end *end, int64_t port, const struct sockaddr_in *peers,
                      int64_t count, int64_t lanes);
void sockets_close(struct sockets *s);

/* Passes received packets to the core, without waiting; returns their number. */
int64_t sockets_receive(struct sockets *s, struct nf_core *core, double now);

/* Returns whether the last sockets_receive may have left packets. */
int sockets_more(const struct sockets *s);

/* Sends the core's packets until the sockets are full. */
void sockets_send(struct sockets *s, struct nf_core *core, double now);

/* Returns when packets that were sent leave, at the latest; infinite if none wait. */
double sockets_next_due(const struct sockets *s);

/* Returns whether a socket, or the link's queue, is full. */
int sockets_blocked(const struct sockets *s);

/* Fills `polled`, of NF_TREES_MAX entries; returns the number of entries. */
int sockets_poll(const struct sockets *s, struct pollfd *polled);

/* Returns the errno of a socket that failed, else 0. */
int sockets_error(const struct sockets *s);

/* Returns the ICMP errors and the packets that the kernel dropped, in all epochs. */
int64_t sockets_survived_errors(const struct sockets *s);

#endif
