/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../io/udp_batch.h"
#include "../wire/target.h"

enum { CHILD_NUMBERS = 1 << 16, NO_CHILD = -1 };

struct root_tree {
    struct root_tree *next;
    int64_t tree;
    struct nf_slot_pool pool;
    int32_t *bits;     /* by child number */
    uint32_t *sources; /* by bit, those from `starts[bit]` to `starts[bit + 1]`; NULL: any */
    int64_t *starts;
};

struct nf_root {
    struct batch_socket socket;
    struct link *link; /* in place of `socket`, or NULL */
    int wake;
    int64_t lanes, port, epoch, replies;
    struct sockaddr_in *reply_to;
    int64_t *verdicts;
    struct root_tree *trees;
    struct udp_batch *udp_batch;
    uint8_t *rows; /* results to send, */
    struct sockaddr_in names[NF_BATCH_OUT];
    uint8_t first[NF_BATCH_OUT]; /* their receivers, and whether each is the first result of its sum */
    int64_t waiting;
    struct udp_batch_errors errors;
    struct nf_shards *shards; /* NULL: all slots are this thread's */
    int64_t shard, handed_over;
};

static int64_t packet_bytes(const struct nf_root *r) { return NF_HEADER_BYTES + 4 * r->lanes; }

static void free_tree(struct root_tree *t) {
    nf_slot_pool_free(&t->pool);
    free(t->bits);
    free(t->sources);
    free(t->starts);
    free(t);
}

static struct nf_root *create(int wake, int64_t lanes, int64_t port, const struct sockaddr_in *reply_to, int64_t replies,
                              int64_t *verdicts) {
    struct nf_root *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (struct nf_root){.wake = wake, .lanes = lanes, .port = port, .replies = replies, .verdicts = verdicts};
    r->reply_to = calloc((size_t)(replies ? replies : 1), sizeof *reply_to);
    r->udp_batch = udp_batch_create(packet_bytes(r));
    r->rows = malloc((size_t)(NF_BATCH_OUT * packet_bytes(r)));
    if (!r->reply_to || !r->udp_batch || !r->rows) {
        nf_root_destroy(r);
        return NULL;
    }
    if (replies) memcpy(r->reply_to, reply_to, (size_t)replies * sizeof *reply_to);
    return r;
}

struct nf_root *nf_root_create(int fd, int wake, int64_t lanes, int64_t port, const struct sockaddr_in *reply_to,
                               int64_t replies, int64_t *verdicts) {
    struct nf_root *r = create(wake, lanes, port, reply_to, replies, verdicts);
    if (r) r->socket = batch_socket_open(fd);
    return r;
}

struct nf_root *nf_root_create_on_link(const struct nf_link_end *end, int wake, int64_t lanes, int64_t port,
                                       int64_t *verdicts) {
    struct nf_root *r = create(wake, lanes, port, NULL, 0, verdicts);
    if (!r) return NULL;
    r->link = link_open(end, port, packet_bytes(r));
    if (r->link) return r;
    nf_root_destroy(r);
    return NULL;
}

void nf_root_destroy(struct nf_root *r) {
    nf_root_start_epoch(r, 0);
    link_close(r->link);
    udp_batch_destroy(r->udp_batch);
    free(r->reply_to);
    free(r->rows);
    free(r);
}

void nf_root_set_shard(struct nf_root *r, struct nf_shards *shards, int64_t shard) {
    r->shards = shards;
    r->shard = shard;
}

void nf_root_start_epoch(struct nf_root *r, int64_t epoch) {
    r->epoch = epoch;
    while (r->trees) {
        struct root_tree *t = r->trees;
        r->trees = t->next;
        free_tree(t);
    }
}

int nf_root_add_tree(struct nf_root *r, int64_t tree, int64_t slots, const uint16_t *children, int64_t count,
                     const uint32_t *sources, const int64_t *starts) {
    struct root_tree *t = calloc(1, sizeof *t);
    if (!t) return -1;
    t->tree = tree;
    t->bits = malloc(CHILD_NUMBERS * sizeof *t->bits);
    int failed = !t->bits || nf_slot_pool_init(&t->pool, NF_ROOT, slots, r->lanes, count);
    if (starts[count]) {
        t->sources = malloc((size_t)starts[count] * sizeof *sources);
        t->starts = malloc((size_t)(count + 1) * sizeof *starts);
        failed |= !t->sources || !t->starts;
    }
    if (failed) {
        free_tree(t);
        return -1;
    }
    for (int i = 0; i < CHILD_NUMBERS; i++) t->bits[i] = NO_CHILD;
    for (int64_t i = 0; i < count; i++) t->bits[children[i]] = (int32_t)i;
    if (t->sources) {
        memcpy(t->sources, sources, (size_t)starts[count] * sizeof *sources);
        memcpy(t->starts, starts, (size_t)(count + 1) * sizeof *starts);
    }
    t->next = r->trees;
    r->trees = t;
    return 0;
}

int nf_root_set_quorum(struct nf_root *r, int64_t tree, int64_t direct_children, int64_t min_contributions) {
    struct root_tree *t = r->trees;
    while (t && t->tree != tree) t = t->next;
    return t ? nf_slot_pool_set_quorum(&t->pool, direct_children, min_contributions) : 0;
}

static int may_send(const struct root_tree *t, int64_t bit, uint32_t address) {
    if (!t->sources) return 1;
    int64_t low = t->starts[bit], high = t->starts[bit + 1];
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (t->sources[middle] == address) return 1;
        if (t->sources[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* W8 and W11. */
static int is_wellformed(const struct nf_root *r, const struct header *h, int64_t length) {
    if (length == NF_HEADER_BYTES) return h->version_kind == VERSION_KIND_GRADIENT && is_short(h) && !(h->flags & FLAG_QUORUM);
    if (length != packet_bytes(r) || h->version_kind != VERSION_KIND_GRADIENT) return 0;
    return is_targeted(h) ? (h->flags & (FLAG_DATA | FLAG_QUORUM)) == FLAG_DATA : __builtin_bswap16(h->lanes) == r->lanes;
}

enum nf_verdict nf_root_packet(struct nf_root *r, const uint8_t *packet, int64_t length, int marked,
                               const struct sockaddr_in *from, struct header *result) {
    const struct header *h = (const struct header *)packet;
    if (!is_wellformed(r, h, length)) return NF_MALFORMED;
    struct root_tree *t = r->trees;
    while (t && t->tree != __builtin_bswap16(h->tree)) t = t->next;
    if (!t) return NF_UNADMITTED;
    int32_t bit = t->bits[__builtin_bswap16(h->child)];
    if (bit == NO_CHILD || ntohs(from->sin_port) != r->port || !may_send(t, bit, ntohl(from->sin_addr.s_addr)))
        return NF_UNADMITTED;
    if (__builtin_bswap32(h->tag) >> ROUND_BITS != r->epoch) return NF_STALE_EPOCH;
    return nf_slot_pool_accumulate(&t->pool, bit, h, marked, result);
}

static double monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sends a batch. The packets that a full socket does not take are lost, and retransmissions follow. */
static void send_rows(struct nf_root *r, const uint8_t *const *rows, const int64_t *lengths, const struct sockaddr_in *to,
                      int64_t count) {
    if (r->link)
        link_send(r->link, rows, lengths, to, count, monotonic());
    else
        udp_batch_send(r->udp_batch, &r->socket, rows, lengths, to, count, &r->errors);
}

static int64_t length_of(const struct nf_root *r, const uint8_t *row) {
    return is_short((const struct header *)row) ? NF_HEADER_BYTES : packet_bytes(r);
}

static void flush(struct nf_root *r) {
    const uint8_t *rows[NF_BATCH_OUT], *first[NF_BATCH_OUT];
    struct sockaddr_in senders[NF_BATCH_OUT], receivers[NF_BATCH_OUT];
    int64_t lengths[NF_BATCH_OUT], some = 0, firsts = 0;
    for (int64_t i = 0; i < r->waiting; i++) {
        const uint8_t *row = r->rows + i * packet_bytes(r);
        if (r->replies && r->first[i]) {
            first[firsts++] = row;
        } else {
            senders[some] = r->names[i];
            lengths[some] = length_of(r, row);
            rows[some++] = row;
        }
    }
    r->waiting = 0;
    if (some) send_rows(r, rows, lengths, senders, some);
    for (int64_t k = 0; firsts && k < r->replies; k++) {
        for (int64_t i = 0; i < firsts; i++) {
            receivers[i] = r->reply_to[k];
            lengths[i] = target_wants((const struct header *)first[i], k) ? length_of(r, first[i]) : NF_HEADER_BYTES;
        }
        send_rows(r, first, lengths, receivers, firsts);
    }
}

static void take(void *context, const uint8_t *packet, int64_t length, int marked, const struct sockaddr_in *from) {
    struct nf_root *r = context;
    struct header *result = (struct header *)(r->rows + r->waiting * packet_bytes(r));
    enum nf_verdict verdict = nf_root_packet(r, packet, length, marked, from, result);
    __atomic_add_fetch(&r->verdicts[verdict], 1, __ATOMIC_RELAXED);
    if (verdict != NF_RESULT_SENT && verdict != NF_RESULT_RESENT && verdict != NF_LATE && verdict != NF_SLOT_REUSED) return;
    r->names[r->waiting] = *from;
    r->first[r->waiting++] = verdict == NF_RESULT_SENT;
    if (r->waiting == NF_BATCH_OUT) flush(r);
}

/* A packet of another length has no slot: any thread counts it. */
static void take_or_hand_over(void *context, const uint8_t *packet, int64_t length, int marked,
                              const struct sockaddr_in *from) {
    struct nf_root *r = context;
    int64_t owner = r->shard;
    if (r->shards && (length == packet_bytes(r) || length == NF_HEADER_BYTES))
        owner = shards_of_slot(r->shards, __builtin_bswap16(((const struct header *)packet)->slot));
    if (owner == r->shard) {
        take(r, packet, length, marked, from);
        return;
    }
    r->handed_over++;
    if (!shards_hand_over(r->shards, r->shard, owner, packet, length, marked, from)) r->errors.survived++;
}

static struct timespec timespec_of(double seconds) {
    if (seconds < 0) seconds = 0;
    time_t whole = (time_t)seconds;
    return (struct timespec){whole, (long)(1e9 * (seconds - (double)whole))};
}

static int64_t receive(struct nf_root *r) {
    if (r->link) return link_receive(r->link, take, r, &r->errors);
    int64_t count = udp_batch_receive(r->udp_batch, &r->socket, take_or_hand_over, r, &r->errors);
    if (r->shards) shards_notify(r->shards, r->shard);
    return count;
}

int64_t nf_root_serve(struct nf_root *r, double seconds) {
    double now = monotonic(), until = now + seconds;
    r->errors.fatal = 0;
    for (; now < until; now = monotonic()) {
        int64_t count = receive(r);
        flush(r);
        if (r->link) link_flush(r->link, now, &r->errors);
        if (r->errors.fatal) return r->errors.fatal;
        struct pollfd polled[] = {{r->link ? link_fd(r->link) : r->socket.fd, POLLIN, 0},
                                  {r->wake, POLLIN, 0},
                                  {r->shards ? shards_fd(r->shards, r->shard) : -1, POLLIN, 0}};
        if (r->link && link_is_full(r->link)) polled[0].events |= POLLOUT;
        double due = r->link ? link_next_due(r->link) : until;
        struct timespec wait = timespec_of(count ? 0 : (due < until ? due : until) - now);
        int found = ppoll(polled, sizeof polled / sizeof *polled, &wait, NULL);
        if (found < 0) return errno == EINTR ? 0 : errno;
        if (polled[2].revents) shards_take(r->shards, r->shard, take, r);
        uint64_t value;
        if (polled[1].revents && read(r->wake, &value, sizeof value) >= 0) return 0;
    }
    return 0;
}

int64_t nf_root_socket_errors(const struct nf_root *r) { return r->errors.survived; }

int64_t nf_root_handed_over(const struct nf_root *r) { return r->handed_over; }
