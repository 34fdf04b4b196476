/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "udp_batch.h"

struct sockets {
    int64_t count, generation;
    struct batch_socket sockets[NF_TREES_MAX];
    struct udp_batch *udp_batch;
    struct udp_batch_errors errors;
    int more;
    struct nf_out out[UDP_BATCH_OUT]; /* [sent, filled) wait until their socket is not full */
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

void sockets_close(struct sockets *s) {
    for (int64_t i = 0; i < s->count; i++) close(s->sockets[i].fd);
    s->count = s->sent = s->filled = 0;
}

void sockets_destroy(struct sockets *s) {
    sockets_close(s);
    udp_batch_destroy(s->udp_batch);
    free(s);
}

/* The receiver of a datagram. */
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

int64_t sockets_receive(struct sockets *s, struct nf_core *core, double now) {
    int64_t total = 0;
    s->more = 0;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t count = udp_batch_receive(s->udp_batch, &s->sockets[i], take, &(struct taker){core, i, now}, &s->errors);
        s->more |= count == UDP_BATCH_IN;
        total += count;
    }
    return total;
}

int sockets_more(const struct sockets *s) { return s->more; }

/* Sends [sent, filled); 0: a socket is full. */
static int flush(struct sockets *s) {
    const uint8_t *packets[UDP_BATCH_OUT];
    while (s->sent < s->filled) {
        int64_t endpoint = s->out[s->sent].endpoint, count = 0;
        for (int64_t i = s->sent; i < s->filled && s->out[i].endpoint == endpoint; i++) packets[count++] = s->out[i].packet;
        int64_t done = udp_batch_send(s->udp_batch, &s->sockets[endpoint], packets, NULL, count, &s->errors);
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
    while (s->count && flush(s)) {
        s->sent = 0;
        s->filled = nf_core_send(core, s->out, UDP_BATCH_OUT, now);
        if (!s->filled) return;
    }
}

int sockets_blocked(const struct sockets *s) { return s->sent < s->filled; }

int sockets_poll(const struct sockets *s, struct pollfd *polled) {
    short events = (short)(sockets_blocked(s) ? POLLIN | POLLOUT : POLLIN);
    for (int64_t i = 0; i < s->count; i++) polled[i] = (struct pollfd){s->sockets[i].fd, events, 0};
    return (int)s->count;
}

int sockets_error(const struct sockets *s) { return s->errors.fatal; }

int64_t sockets_survived_errors(const struct sockets *s) { return s->errors.survived; }
