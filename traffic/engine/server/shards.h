/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The slots of a parameter server, divided over threads, and the packets that one thread hands over to another. The sockets of
 * all threads share a port, and a program in the kernel steers a datagram by its first packet's slot. So datagrams that the
 * kernel merged, or that were there before the program, may reach another thread than their slot's. Queues have one writer and
 * one reader, without locks. */

#ifndef NETFOLD_SHARDS_H
#define NETFOLD_SHARDS_H

#include <netinet/in.h>
#include <stdint.h>

#include "../io/udp_batch.h"
#include "../wire/export.h"

enum { NF_SHARDS_MAX = 64 };

struct nf_shards;

/* Creates `count` shards, 1 to NF_SHARDS_MAX, for packets of this many lanes. Returns NULL if there is no memory, or no file
 * descriptors. */
NF_API struct nf_shards *nf_shards_create(int64_t count, int64_t lanes);
NF_API void nf_shards_destroy(struct nf_shards *s);

/* Lets the kernel steer between `count` sockets that share a port: in the order in which they were bound, that of their shards.
 * `fd` is one of them. Returns 0 or an errno. */
NF_API int nf_shards_steer(int fd, int64_t count);

/* Returns the shard of a slot, which is the same in every tree. */
int64_t shards_of_slot(const struct nf_shards *s, int64_t slot);

/* Hands a packet, or a header alone, over from the thread of shard `from` to that of `to`, which sees it after shards_notify. Returns 0 if the
 * queue is full: the packet is lost. */
int shards_hand_over(struct nf_shards *s, int64_t from, int64_t to, const uint8_t *packet, int64_t length, int marked,
                     const struct sockaddr_in *sender);

/* Publishes the packets that this thread has handed over since the last call, and wakes their readers. */
void shards_notify(struct nf_shards *s, int64_t from);

/* Passes the packets that were handed over to this shard to the sink. Returns their number. */
int64_t shards_take(struct nf_shards *s, int64_t shard, on_datagram *take, void *context);

/* Returns a descriptor that is readable after shards_notify, until shards_take. */
int shards_fd(const struct nf_shards *s, int64_t shard);

#endif
