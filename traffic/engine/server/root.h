/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A parameter server is the root of trees, on a host. It admits packets by address, UDP port, tree, child and epoch, and adds
 * them. Results go to the child that completed a sum or retransmitted to it; with `reply_to` the first result of a sum goes to
 * all of these instead. */

#ifndef NETFOLD_ROOT_H
#define NETFOLD_ROOT_H

#include <netinet/in.h>
#include <stdint.h>

#include "../io/link.h"
#include "../wire/export.h"
#include "shards.h"
#include "slot_pool.h"

struct nf_root;

/* Creates a root. `fd`, a UDP socket, and `wake`, an eventfd, stay the caller's. `verdicts`: NF_VERDICTS counters. Returns NULL
 * if there is no memory. */
NF_API struct nf_root *nf_root_create(int fd, int wake, int64_t lanes, int64_t port, const struct sockaddr_in *reply_to,
                                      int64_t replies, int64_t *verdicts);

/* Creates a root on a link, in place of a UDP socket. */
NF_API struct nf_root *nf_root_create_on_link(const struct nf_link_end *end, int wake, int64_t lanes, int64_t port,
                                              int64_t *verdicts);
NF_API void nf_root_destroy(struct nf_root *r);

/* Gives the root one shard's slots, before it serves: packets of other slots go to their threads. `shards` stays the
 * caller's. */
NF_API void nf_root_set_shard(struct nf_root *r, struct nf_shards *shards, int64_t shard);

/* Starts an epoch, without trees. */
NF_API void nf_root_start_epoch(struct nf_root *r, int64_t epoch);

/* Adds a tree with these children. Child i may send from the addresses (in host order) sources[starts[i]] up to
 * sources[starts[i + 1]], ascending; without any sources, from every address. Returns 0, or -1 if there is no memory. */
NF_API int nf_root_add_tree(struct nf_root *r, int64_t tree, int64_t slots, const uint16_t *children, int64_t count,
                            const uint32_t *sources, const int64_t *starts);

/* Allows sums of the tree to be sealed with `min_contributions`; the first `direct_children` are the root's own, the others are
 * below inner nodes. Returns 0, or -1 if there is no memory. */
NF_API int nf_root_set_quorum(struct nf_root *r, int64_t tree, int64_t direct_children, int64_t min_contributions);

/* Serves until `wake` is written, a signal arrives, or this many seconds have passed. Returns 0 or the errno of the socket. */
NF_API int64_t nf_root_serve(struct nf_root *r, double seconds);

/* Returns the errors of the socket that nf_root_serve survived: ICMP errors, and packets that the kernel dropped. Do not call
 * it while the root serves. */
NF_API int64_t nf_root_socket_errors(const struct nf_root *r);

/* Returns the number of packets that reached this thread and were handed over to another one. Do not call it while the root
 * serves. */
NF_API int64_t nf_root_handed_over(const struct nf_root *r);

/* Handles one packet without the socket: returns its verdict, and the packet to send. */
NF_API enum nf_verdict nf_root_packet(struct nf_root *r, const uint8_t *packet, int64_t length, int marked,
                                      const struct sockaddr_in *from, struct header *result);

#endif
