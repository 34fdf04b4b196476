/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Receives the frames of a port without a network interface: a Unix datagram socket, one frame a datagram. Its peer is another port
 * or a host, so a network of switches needs neither rights nor namespaces. */

#ifndef SS_FRAME_SOCKET_H
#define SS_FRAME_SOCKET_H

#include <stdint.h>

enum { SS_FRAME_SOCKET_BATCH = 32, SS_FRAME_SOCKET_MTU = 16384 };

struct ss_frame_socket;

/* Returns 0, -ENOMEM, or -ENOTSOCK or -EPROTOTYPE if it is no Unix datagram socket. `fd` stays the caller's. Frames that wait
 * in it are lost. */
int ss_frame_socket_open(struct ss_frame_socket **out, int fd);
void ss_frame_socket_free(struct ss_frame_socket *socket);

/* Receives up to `budget` frames, at most SS_FRAME_SOCKET_BATCH; returns their number. They are valid until the next call. */
uint32_t ss_frame_socket_receive(struct ss_frame_socket *socket, uint32_t budget);

/* Returns frame `at` of the last ss_frame_socket_receive. `length` is 0 for one that is longer than SS_FRAME_SOCKET_MTU. */
uint8_t *ss_frame_socket_frame(struct ss_frame_socket *socket, uint32_t at, uint32_t *length);

#endif
