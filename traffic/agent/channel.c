/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"

enum { MAX_WAIT_MS = 3000 /* for an agent that does not read */ };

struct na_channel {
    int stream, has_left;
    pthread_mutex_t lock; /* of sending */
    int32_t sockets[NA_SOCKETS_MAX];
    size_t socket_count;
    size_t held, used; /* bytes of `buffer`; of them those of the last message */
    char buffer[sizeof(struct na_header) + NA_BODY_BYTES + 1] __attribute__((aligned(8)));
    char text_end; /* the byte behind the message, in place of which there is a zero */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct na_channel *na_channel_open(int stream) {
    struct na_channel *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->stream = stream;
    fcntl(stream, F_SETFL, fcntl(stream, F_GETFL) | O_NONBLOCK);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void na_channel_close(struct na_channel *c) {
    close(c->stream);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void na_channel_finish(struct na_channel *c) { shutdown(c->stream, SHUT_WR); }

int na_channel_descriptor(const struct na_channel *c) { return c->stream; }

/* ---- sending ---- */

/* A closed connection is an error, not a signal. */
static ssize_t put(int stream, struct iovec *parts) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n = sendmsg(stream, &message, MSG_NOSIGNAL);
    return n < 0 && errno == ENOTSOCK ? writev(stream, parts, 2) : n;
}

static void drop_sent(struct iovec *parts, size_t sent) {
    for (int i = 0; i < 2; i++) {
        size_t of_part = sent < parts[i].iov_len ? sent : parts[i].iov_len;
        parts[i].iov_base = (char *)parts[i].iov_base + of_part;
        parts[i].iov_len -= of_part;
        sent -= of_part;
    }
}

static int send_parts(struct na_channel *c, struct iovec *parts) {
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        struct pollfd capacity = {c->stream, POLLOUT, 0};
        ssize_t n = put(c->stream, parts);
        if (n > 0) drop_sent(parts, (size_t)n);
        if (n < 0 && errno == EAGAIN && poll(&capacity, 1, MAX_WAIT_MS) > 0 && capacity.revents & POLLOUT) continue;
        if (n < 0 && errno != EINTR) return -1;
    }
    return 0;
}

int na_send(struct na_channel *c, uint32_t type, const void *body, size_t size) {
    struct na_header header = {type, (uint32_t)size};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)(uintptr_t)body, size}};
    pthread_mutex_lock(&c->lock);
    int result = c->has_left ? 0 : send_parts(c, parts);
    c->has_left |= type == NA_LEAVE;
    pthread_mutex_unlock(&c->lock);
    return result;
}

int na_send_text(struct na_channel *c, uint32_t type, const char *text) { return na_send(c, type, text, strlen(text)); }

/* ---- receiving ---- */

static void keep_sockets(struct na_channel *c, struct msghdr *message) {
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return;
    c->socket_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int32_t);
    memcpy(c->sockets, CMSG_DATA(header), c->socket_count * sizeof(int32_t));
}

static ssize_t get(struct na_channel *c) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int32_t) * NA_SOCKETS_MAX)];
    } control;
    struct iovec part = {c->buffer + c->held, sizeof c->buffer - 1 - c->held};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(c->stream, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == ENOTSOCK) return read(c->stream, part.iov_base, part.iov_len);
    if (n >= 0) keep_sockets(c, &message);
    return n;
}

static void drop_message(struct na_channel *c) {
    if (c->used == 0) return;
    c->buffer[c->used] = c->text_end;
    c->held -= c->used;
    memmove(c->buffer, c->buffer + c->used, c->held);
    c->used = 0;
}

/* 1: a whole message is held. 0: it is not. -1: it is none. */
static int take(struct na_channel *c, struct na_message *message) {
    struct na_header header;
    if (c->held < sizeof header) return 0;
    memcpy(&header, c->buffer, sizeof header);
    if (header.size > NA_BODY_BYTES || header.type < NA_HELLO || header.type > NA_ENDED) return -1;
    if (c->held < sizeof header + header.size) return 0;
    const char *body = c->buffer + sizeof header;
    *message = (struct na_message){.type = header.type, .size = header.size, .body = body, .text = body};
    if (header.type == NA_ASSIGN) {
        message->sockets = c->sockets;
        message->socket_count = c->socket_count;
        c->socket_count = 0;
    }
    c->used = sizeof header + header.size;
    c->text_end = c->buffer[c->used];
    c->buffer[c->used] = '\0';
    return 1;
}

int na_receive(struct na_channel *c, struct na_message *message, double seconds) {
    double until = now() + seconds;
    drop_message(c);
    for (;;) {
        int found = take(c, message);
        if (found != 0) return found;
        struct pollfd polled = {c->stream, POLLIN, 0};
        double left = until - now();
        int ready = poll(&polled, 1, left > 0 ? (int)(left * 1e3) : 0);
        if (ready == 0) return 0;
        if (ready < 0 && errno != EINTR) return -1;
        ssize_t n = ready > 0 ? get(c) : 1;
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return -1;
        if (ready > 0 && n > 0) c->held += (size_t)n;
    }
}
