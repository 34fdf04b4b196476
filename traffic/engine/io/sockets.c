/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "sockets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "udp_batch.h"

struct sockets {
    int64_t count, generation;
    struct batch_socket sockets[NF_TREES_MAX];
    struct link *link; /* in place of `sockets`, or NULL */
    struct sockaddr_in peers[NF_TREES_MAX];
    struct udp_batch *udp_batch;
    struct udp_batch_errors errors;
    int more;
    struct nf_out out[NF_BATCH_OUT]; /* [sent, filled) wait until their socket is not full */
    int64_t sent, filled;
};

struct sockets *sockets_create(void) { return calloc(1, sizeof(struct sockets)); }

int sockets_open(struct sockets *s, const int32_t *fds, int64_t count, int64_t lanes) {
    s->count = count;
    s->errors.fatal = 0;
    s->sent = s->filled = 0;
    for (int64_t i = 0; i < count; i++) s->sockets[i] = batch_socket_open(fds[i]);
    udp_batch_destroy(s->udp_batch);
    s->udp_batch = udp_batch_create(NF_HEADER_BYTES + 4 * lanes);
    return s->udp_batch ? 0 : ENOMEM;
}

int sockets_open_link(struct sockets *s, const struct nf_link_end *end, int64_t port, const struct sockaddr_in *peers,
                      int64_t count, int64_t lanes) {
    s->link = link_open(end, port, NF_HEADER_BYTES + 4 * lanes);
    if (!s->link) return ENOMEM;
    s->count = count;
    s->errors.fatal = 0;
    s->sent = s->filled = 0;
    memcpy(s->peers, peers, (size_t)count * sizeof *peers);
    return 0;
}

void sockets_close(struct sockets *s) {
    for (int64_t i = 0; i < s->count && !s->link; i++) close(s->sockets[i].fd);
    link_close(s->link);
    s->link = NULL;
    s->count = s->sent = s->filled = 0;
}

void sockets_destroy(struct sockets *s) {
    sockets_close(s);
    udp_batch_destroy(s->udp_batch);
    free(s);
}

/* Receives a packet from a link. */
struct link_taker {
    const struct sockets *sockets;
    struct nf_core *core;
    double now;
};

/* Receives a datagram. */
struct taker {
    struct nf_core *core;
    int64_t endpoint;
    double now;
};

static void take(void *context, const uint8_t *packet, int64_t length, int marked, const struct sockaddr_in *from) {
    const struct taker *t = context;
    (void)from; /* the socket is connected */
    nf_core_receive(t->core, t->endpoint, packet, length, marked, t->now);
}

/* Takes packets of peers only, as connected sockets do. */
static void take_from_link(void *context, const uint8_t *packet, int64_t length, int marked, const struct sockaddr_in *from) {
    const struct link_taker *t = context;
    for (int64_t i = 0; i < t->sockets->count; i++) {
        const struct sockaddr_in *peer = &t->sockets->peers[i];
        if (peer->sin_addr.s_addr == from->sin_addr.s_addr && peer->sin_port == from->sin_port) {
            nf_core_receive(t->core, i, packet, length, marked, t->now);
            return;
        }
    }
}

static int64_t receive_from_link(struct sockets *s, struct nf_core *core, double now) {
    int64_t count = link_receive(s->link, take_from_link, &(struct link_taker){s, core, now}, &s->errors);
    s->more = count == NF_BATCH_IN;
    return count;
}

int64_t sockets_receive(struct sockets *s, struct nf_core *core, double now) {
    if (s->link) return receive_from_link(s, core, now);
    int64_t total = 0;
    s->more = 0;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t count = udp_batch_receive(s->udp_batch, &s->sockets[i], take, &(struct taker){core, i, now}, &s->errors);
        s->more |= count == NF_BATCH_IN;
        total += count;
    }
    return total;
}

int sockets_more(const struct sockets *s) { return s->more; }

static int64_t send_packets(struct sockets *s, int64_t endpoint, const uint8_t *const *packets, const int64_t *lengths,
                            int64_t count, double now) {
    if (s->link) return link_send_to_one(s->link, packets, lengths, &s->peers[endpoint], count, now);
    return udp_batch_send(s->udp_batch, &s->sockets[endpoint], packets, lengths, NULL, count, &s->errors);
}

/* Sends [sent, filled); returns 0 if a socket is full. */
static int flush(struct sockets *s, double now) {
    const uint8_t *packets[NF_BATCH_OUT];
    int64_t lengths[NF_BATCH_OUT];
    while (s->sent < s->filled) {
        int64_t endpoint = s->out[s->sent].endpoint, count = 0;
        for (int64_t i = s->sent; i < s->filled && s->out[i].endpoint == endpoint; i++) {
            lengths[count] = s->out[i].length;
            packets[count++] = s->out[i].packet;
        }
        int64_t done = send_packets(s, endpoint, packets, lengths, count, now);
        s->sent += done;
        if (done < count) return 0;
    }
    return 1;
}

void sockets_send(struct sockets *s, struct nf_core *core, double now) {
    if (s->generation != nf_core_generation(core)) { /* packets that wait are in freed memory */
        s->generation = nf_core_generation(core);
        s->sent = s->filled = 0;
    }
    while (s->count && flush(s, now)) {
        s->sent = 0;
        s->filled = nf_core_send(core, s->out, NF_BATCH_OUT, now);
        if (!s->filled) break;
    }
    if (s->link) link_flush(s->link, now, &s->errors);
}

double sockets_next_due(const struct sockets *s) { return s->link ? link_next_due(s->link) : INFINITY; }

int sockets_blocked(const struct sockets *s) { return s->sent < s->filled; }

int sockets_poll(const struct sockets *s, struct pollfd *polled) {
    if (s->link) {
        *polled = (struct pollfd){link_fd(s->link), (short)(link_is_full(s->link) ? POLLIN | POLLOUT : POLLIN), 0};
        return 1;
    }
    short events = (short)(sockets_blocked(s) ? POLLIN | POLLOUT : POLLIN);
    for (int64_t i = 0; i < s->count; i++) polled[i] = (struct pollfd){s->sockets[i].fd, events, 0};
    return (int)s->count;
}

int sockets_error(const struct sockets *s) { return s->errors.fatal; }

int64_t sockets_survived_errors(const struct sockets *s) { return s->errors.survived; }
