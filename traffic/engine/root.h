/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A parameter server: the root of trees, on a host. It admits packets by address, UDP port, tree, child and epoch, adds them
 * up, and answers who completed a sum, or asked for it again, or (`reply_to`) everybody. */

#ifndef NETFOLD_ROOT_H
#define NETFOLD_ROOT_H

#include <netinet/in.h>
#include <stdint.h>

#include "slots.h"

struct nf_root;

/* `fd`: a UDP socket, which stays the caller's, as does `wake`, an eventfd. `reply_to`: whom each result goes to, instead of who
 * completed it. `verdicts`: NF_VERDICTS counters. NULL: no memory. */
struct nf_root *nf_root_create(int fd, int wake, int64_t lanes, int64_t port, const struct sockaddr_in *reply_to,
                               int64_t replies, int64_t *verdicts);
void nf_root_destroy(struct nf_root *r);

/* A new epoch: all trees are gone. */
void nf_root_begin(struct nf_root *r, int64_t epoch);

/* A tree with the children of these numbers; child i may send from the addresses (in host order) `sources[starts[i]]` up to
 * `sources[starts[i + 1]]`, ascending. No sources at all: from anywhere. 0, or -1: no memory. */
int nf_root_tree(struct nf_root *r, int64_t tree, int64_t slots, const uint16_t *children, int64_t count,
                 const uint32_t *sources, const int64_t *starts);

/* The tree's sums may go with `least` contributions once a deadline is over; the first `own` children are the root's own,
 * the others those under inner nodes. 0, or -1: no memory. */
int nf_root_quorum(struct nf_root *r, int64_t tree, int64_t own, int64_t least);

/* Adds up until `wake` is written, a signal comes, or so many seconds have passed. 0, or the errno of the socket. */
int64_t nf_root_serve(struct nf_root *r, double seconds);

/* One packet, as if it had come; gives its verdict, and the answer. */
enum nf_verdict nf_root_packet(struct nf_root *r, const uint8_t *packet, int64_t length, int marked,
                               const struct sockaddr_in *from, struct header *result);

#endif
