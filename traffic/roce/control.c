/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../agent/channel.h"
#include "../agent/dump.h"
#include "../engine/numerics/codec.h"
#include "calls.h"

enum { HEARTBEAT_MS = 300 }; /* at most */

struct nr_control {
    struct na_channel *channel;
    struct nr_calls *calls;
    pthread_mutex_t dumping; /* one dump at a time */
    int wake, stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    struct nr_assignment assignment;
    struct na_ring ring;
    enum nr_error failed;
    char reason[NR_REASON_BYTES];
    int heartbeat_ms;
};

/* ---- the agent's messages ---- */

static bool is_text(const char *text, size_t capacity) { return memchr(text, '\0', capacity) != NULL; }

static bool read_tree(const struct nf_tree_spec *from, struct nr_tree *tree) {
    tree->tree = (uint32_t)from->tree;
    tree->slots = (uint32_t)from->slots;
    tree->window = (uint32_t)from->window;
    tree->share = from->share;
    return from->window >= 4 && from->slots <= UINT32_MAX && from->slots / 2 >= from->window;
}

static bool read_departures(const struct na_departures *from, struct nr_departures *left) {
    left->call_limit = (uint64_t)from->departures.call_limit;
    left->calls = (uint64_t)from->calls;
    left->is_final = from->departures.is_final != 0;
    left->are_present = from->departures.in_epoch != 0;
    memcpy(left->hosts, from->hosts, sizeof left->hosts);
    return is_text(left->hosts, sizeof left->hosts) && left->hosts[0] != '\0';
}

static bool read_assignment(const struct na_assign *from, struct nr_assignment *a) {
    const struct nf_assignment *epoch = &from->assignment;
    if (epoch->tree_count < 1 || epoch->tree_count > NR_TREES || epoch->workers < 2 || epoch->rank < 0 ||
        epoch->rank >= epoch->workers || epoch->epoch < 1 || (epoch->lanes != 64 && epoch->lanes != 256) ||
        from->lease_ms < 3 || !is_text(from->address, sizeof from->address))
        return false;
    a->epoch = (uint32_t)epoch->epoch;
    a->rank = (uint32_t)epoch->rank;
    a->workers = (uint32_t)epoch->workers;
    a->lanes = (uint32_t)epoch->lanes;
    a->trees = (uint32_t)epoch->tree_count;
    a->integer = from->scheme == NF_INTEGER;
    a->floats = from->scheme == NF_FLOAT32_SUM;
    a->quarter = from->scheme == NF_ROTATED_QUARTER;
    memcpy(a->address, from->address, sizeof a->address);
    bool good = true;
    for (uint32_t i = 0; i < a->trees; i++) good = read_tree(&epoch->trees[i], &a->tree[i]) && good;
    return good;
}

static bool is_ring(const struct na_ring *ring) {
    bool good = ring->tree_count >= 1 && ring->tree_count <= NR_TREES;
    for (int64_t i = 0; good && i < ring->tree_count; i++)
        good = is_text(ring->trees[i].successor, NA_ADDRESS_BYTES) && is_text(ring->trees[i].predecessor, NA_ADDRESS_BYTES);
    return good;
}

/* ---- the thread ---- */

static void fail(struct nr_control *c, enum nr_error error, const char *format, ...) {
    if (c->failed != NR_OK) return;
    va_list words;
    va_start(words, format);
    vsnprintf(c->reason, sizeof c->reason, format, words);
    va_end(words);
    c->failed = error;
}

/* Whether it is a message that a RoCE worker gets. */
static bool keep_message(struct nr_control *c, const struct na_message *message) {
    struct nr_assignment assignment = {0};
    struct nr_departures left = {0};
    const struct na_assign *assign = message->body;
    const struct na_departures *departures = message->body;
    switch (message->type) {
    case NA_ASSIGN:
        if (message->size != sizeof *assign || !read_assignment(assign, &assignment)) return false;
        c->assignment = assignment;
        if (assign->lease_ms / 3 < HEARTBEAT_MS) c->heartbeat_ms = (int)(assign->lease_ms / 3);
        return true;
    case NA_DEPARTURES:
        if (message->size != sizeof *departures || !read_departures(departures, &left)) return false;
        if (departures->epoch == c->assignment.epoch) c->assignment.left = left;
        return true;
    case NA_RING:
        if (message->size != sizeof c->ring || !is_ring(message->body)) return false;
        memcpy(&c->ring, message->body, sizeof c->ring);
        return true;
    case NA_ENDED:
        fail(c, NR_JOB_ENDED, "%s", message->size > 0 ? message->text : "the job has ended");
        return true;
    default:
        return false;
    }
}

static void announce(struct nr_control *c) {
    uint64_t one = 1;
    if (write(c->wake, &one, sizeof one) < 0) return; /* full: it is readable anyway */
}

static void take_message(struct nr_control *c, const struct na_message *message) {
    pthread_mutex_lock(&c->lock);
    if (!keep_message(c, message))
        fail(c, NR_ASSIGNMENT, "the agent's message of type %u and %zu bytes is not one of the protocol's", message->type,
             message->size);
    pthread_mutex_unlock(&c->lock);
    announce(c);
}

static enum nr_error send_report(struct nr_control *c, enum na_message_type type) {
    struct na_report report;
    nr_calls_report(c->calls, &report);
    return nr_control_send(c, type, &report, sizeof report);
}

static int64_t copy_calls(void *calls, struct nf_call_record *to, int64_t capacity) {
    return nr_calls_copy(calls, to, capacity);
}

static void send_calls(struct nr_control *c) {
    pthread_mutex_lock(&c->dumping);
    na_send_calls(c->channel, copy_calls, c->calls);
    pthread_mutex_unlock(&c->dumping);
}

static void *serve_agent(void *context) {
    struct nr_control *c = context;
    int dumps = na_dump_requests();
    for (;;) {
        struct pollfd watched[2] = {{na_channel_descriptor(c->channel), POLLIN, 0}, {c->stop, POLLIN, 0}};
        int ready = poll(watched, 2, c->heartbeat_ms);
        if (ready < 0 && errno != EINTR) break;
        if (watched[1].revents) return NULL;
        if (send_report(c, NA_REPORT) != NR_OK) break;
        if (dumps != na_dump_requests()) {
            dumps = na_dump_requests();
            send_calls(c);
        }
        struct na_message message;
        int found;
        while ((found = na_receive(c->channel, &message, 0)) > 0) take_message(c, &message);
        if (found < 0) break;
    }
    pthread_mutex_lock(&c->lock);
    fail(c, NR_AGENT, "the connection to the agent is lost");
    pthread_mutex_unlock(&c->lock);
    announce(c);
    return NULL;
}

/* ---- opening ---- */

static int connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int connect_tcp(const char *agent, const char *colon) {
    char host[128];
    if ((size_t)(colon - agent) >= sizeof host) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(host, agent, (size_t)(colon - agent));
    host[colon - agent] = '\0';
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC}, *found = NULL;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        errno = EHOSTUNREACH;
        return -1;
    }
    int fd = -1;
    for (struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

static int open_stream(const char *agent) {
    if (strncmp(agent, "fd:", 3) == 0) return fcntl(atoi(agent + 3), F_DUPFD_CLOEXEC, 0);
    if (strncmp(agent, "unix:", 5) == 0) return connect_unix(agent + 5);
    const char *colon = strrchr(agent, ':');
    if (agent[0] == '/' || colon == NULL) return open(agent, O_RDWR | O_CLOEXEC);
    return connect_tcp(agent, colon);
}

static void close_all(struct nr_control *c) {
    if (c->channel != NULL) na_channel_close(c->channel);
    if (c->wake >= 0) close(c->wake);
    if (c->stop >= 0) close(c->stop);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->dumping);
    free(c);
}

enum nr_error nr_control_open(struct nr_control **control, const char *agent, struct nr_calls *calls,
                              char reason[NR_REASON_BYTES]) {
    struct nr_control *c = calloc(1, sizeof *c);
    struct na_hello hello = {NA_VERSION};
    *control = NULL;
    if (c == NULL) return NR_MEMORY;
    c->calls = calls;
    c->heartbeat_ms = HEARTBEAT_MS;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->dumping, NULL);
    na_take_dump_signal();
    int stream = open_stream(agent);
    if (stream >= 0 && (c->channel = na_channel_open(stream)) == NULL) close(stream);
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->channel == NULL || c->wake < 0 || c->stop < 0) {
        snprintf(reason, NR_REASON_BYTES, "no agent at %s: %s", agent, strerror(errno));
    } else if (nr_control_send(c, NA_HELLO, &hello, sizeof hello) != NR_OK ||
               pthread_create(&c->thread, NULL, serve_agent, c) != 0) {
        snprintf(reason, NR_REASON_BYTES, "the agent at %s reads nothing", agent);
    } else {
        *control = c;
        return NR_OK;
    }
    close_all(c);
    return NR_AGENT;
}

void nr_control_close(struct nr_control *c) {
    if (c == NULL) return;
    uint64_t one = 1;
    if (write(c->stop, &one, sizeof one) < 0) abort(); /* a fresh counter takes a one */
    pthread_join(c->thread, NULL);
    close_all(c);
}

int nr_control_descriptor(struct nr_control *c) { return c->wake; }

enum nr_error nr_control_send(struct nr_control *c, enum na_message_type type, const void *body, size_t size) {
    return na_send(c->channel, type, body, size) == 0 ? NR_OK : NR_AGENT;
}

enum nr_error nr_control_leave(struct nr_control *c) { return send_report(c, NA_LEAVE); }

void nr_control_dump(struct nr_control *c) {
    if (na_wants_dumps()) send_calls(c);
}

enum nr_error nr_control_poll(struct nr_control *c, struct nr_assignment *assignment, struct na_ring *ring,
                              char reason[NR_REASON_BYTES]) {
    uint64_t times;
    pthread_mutex_lock(&c->lock);
    if (read(c->wake, &times, sizeof times) < 0) times = 0; /* nothing new */
    *assignment = c->assignment;
    *ring = c->ring;
    enum nr_error failed = c->failed;
    if (failed != NR_OK) memcpy(reason, c->reason, NR_REASON_BYTES);
    pthread_mutex_unlock(&c->lock);
    return failed;
}
