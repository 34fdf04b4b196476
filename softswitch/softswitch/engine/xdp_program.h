/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The XDP program of a port: it gives each frame of a receive queue to the AF_XDP socket of that queue, and leaves others to the
 * kernel. It is made of system calls alone, without libbpf or libxdp. */

#ifndef SS_XDP_PROGRAM_H
#define SS_XDP_PROGRAM_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* Loads the program, and the table of `queues` sockets that it reads. Needs CAP_BPF and CAP_NET_ADMIN, which are needed no
 * more afterwards: an interface that comes back takes the same ones. Returns 0 or a negative errno; the caller closes both. */
int ss_xdp_load(uint32_t queues, int *program_fd, int *sockets_fd);

/* Attaches the program, in the driver where it can, until the descriptor returned is closed. Returns a negative errno on
 * failure (-EBUSY: the interface has another one). */
int ss_xdp_attach(int program_fd, int ifindex);

#pragma GCC visibility pop

/* Puts a socket into the table. Returns 0 or a negative errno. */
int ss_xdp_set_socket(int sockets_fd, uint32_t queue, int socket_fd);

#endif
