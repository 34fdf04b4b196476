/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "shards.h"

#include <errno.h>
#include <linux/filter.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../wire/header.h"

enum { QUEUE = 512, CACHE_LINE = 64, RUN_BITS = 4 };

_Static_assert(1 << RUN_BITS == NF_RUN_SLOTS, "a shard has whole runs of slots");

/* A queue has one writer and one reader. The packets of [taken, filled), modulo QUEUE, are the reader's. */
struct queue {
    uint64_t filled __attribute__((aligned(CACHE_LINE))); /* atomic, */
    uint64_t written; /* the writer's: up to here packets are in, */
    uint64_t seen;    /* and up to here they were taken */
    uint64_t taken __attribute__((aligned(CACHE_LINE))); /* atomic */
    struct sockaddr_in *senders;
    int64_t *lengths;
    uint8_t *marks, *packets;
};

struct shard {
    int fd; /* eventfd */
    struct queue *from; /* by shard */
};

struct nf_shards {
    int64_t count, packet_bytes;
    struct shard shards[NF_SHARDS_MAX];
};

static int create_queue(struct queue *q, int64_t packet_bytes) {
    q->senders = malloc(QUEUE * sizeof *q->senders);
    q->lengths = malloc(QUEUE * sizeof *q->lengths);
    q->marks = malloc(QUEUE);
    q->packets = malloc((size_t)(QUEUE * packet_bytes));
    return q->senders && q->lengths && q->marks && q->packets ? 0 : -1;
}

static int create_shard(struct nf_shards *s, int64_t index) {
    struct shard *shard = &s->shards[index];
    shard->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    size_t bytes = (size_t)s->count * sizeof *shard->from;
    shard->from = aligned_alloc(CACHE_LINE, bytes);
    if (!shard->from) return -1;
    memset(shard->from, 0, bytes);
    int failed = shard->fd < 0;
    for (int64_t i = 0; i < s->count; i++)
        if (i != index) failed |= create_queue(&shard->from[i], s->packet_bytes);
    return failed ? -1 : 0;
}

struct nf_shards *nf_shards_create(int64_t count, int64_t lanes) {
    struct nf_shards *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (struct nf_shards){.count = count, .packet_bytes = NF_HEADER_BYTES + 4 * lanes};
    for (int64_t i = 0; i < count; i++) s->shards[i].fd = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!create_shard(s, i)) continue;
        nf_shards_destroy(s);
        return NULL;
    }
    return s;
}

void nf_shards_destroy(struct nf_shards *s) {
    for (int64_t i = 0; i < s->count; i++) {
        struct shard *shard = &s->shards[i];
        if (shard->fd >= 0) close(shard->fd);
        for (int64_t k = 0; shard->from && k < s->count; k++) {
            free(shard->from[k].senders);
            free(shard->from[k].lengths);
            free(shard->from[k].marks);
            free(shard->from[k].packets);
        }
        free(shard->from);
    }
    free(s);
}

/* The kernel runs the program on the payload of the first packet; a packet that is too short for it goes to shard 0. */
int nf_shards_steer(int fd, int64_t count) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct header, slot)),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, RUN_BITS),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, (uint32_t)count),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) ? errno : 0;
}

int64_t shards_of_slot(const struct nf_shards *s, int64_t slot) { return (slot >> RUN_BITS) % s->count; }

int shards_hand_over(struct nf_shards *s, int64_t from, int64_t to, const uint8_t *packet, int64_t length, int marked,
                     const struct sockaddr_in *sender) {
    struct queue *q = &s->shards[to].from[from];
    if (q->written - q->seen == QUEUE) {
        q->seen = __atomic_load_n(&q->taken, __ATOMIC_ACQUIRE);
        if (q->written - q->seen == QUEUE) return 0;
    }
    uint64_t at = q->written++ % QUEUE;
    q->senders[at] = *sender;
    q->lengths[at] = length;
    q->marks[at] = marked != 0;
    memcpy(q->packets + (int64_t)at * s->packet_bytes, packet, (size_t)length);
    return 1;
}

void shards_notify(struct nf_shards *s, int64_t from) {
    for (int64_t to = 0; to < s->count; to++) {
        struct queue *q = &s->shards[to].from[from];
        if (q->filled == q->written) continue;
        __atomic_store_n(&q->filled, q->written, __ATOMIC_RELEASE);
        uint64_t one = 1;
        if (write(s->shards[to].fd, &one, sizeof one) < 0) continue; /* full: it is awake */
    }
}

int64_t shards_take(struct nf_shards *s, int64_t shard, on_datagram *take, void *context) {
    int64_t total = 0;
    uint64_t value;
    if (read(s->shards[shard].fd, &value, sizeof value) < 0) return 0; /* nothing was handed over */
    for (int64_t from = 0; from < s->count; from++) {
        struct queue *q = &s->shards[shard].from[from];
        uint64_t filled = __atomic_load_n(&q->filled, __ATOMIC_ACQUIRE), at = q->taken;
        for (; at != filled; at++, total++) {
            const uint8_t *packet = q->packets + (int64_t)(at % QUEUE) * s->packet_bytes;
            take(context, packet, q->lengths[at % QUEUE], q->marks[at % QUEUE], &q->senders[at % QUEUE]);
        }
        __atomic_store_n(&q->taken, at, __ATOMIC_RELEASE);
    }
    return total;
}

int shards_fd(const struct nf_shards *s, int64_t shard) { return s->shards[shard].fd; }
