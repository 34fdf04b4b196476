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

enum { LINE_BYTES = 4096, FIRST_HEARTBEAT_MS = 500, MAX_WAIT_MS = 3000 /* for an agent that does not read */ };

struct nr_control {
    int stream, wake, stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below, and of writing */
    struct nr_assignment assignment;
    struct nr_ring ring;
    enum nr_error failed;
    char reason[NR_REASON_BYTES];
    int heartbeat_ms;
    bool left;
};

/* ---- fields of a line ---- */

static uint64_t number(char **rest, bool *good) {
    char *word = strsep(rest, " "), *end = NULL;
    if (word == NULL || *word < '0' || *word > '9') {
        *good = false;
        return 0;
    }
    errno = 0;
    uint64_t value = strtoull(word, &end, 10);
    *good = *good && *end == '\0' && errno == 0;
    return value;
}

static void text(char **rest, char *to, size_t capacity, bool *good) {
    char *word = strsep(rest, " ");
    if (word == NULL || strlen(word) >= capacity) {
        *good = false;
        to[0] = '\0';
        return;
    }
    strcpy(to, word);
}

static bool read_assignment(char *rest, struct nr_assignment *a, int *heartbeat_ms) {
    bool good = true;
    char numerics[16];
    a->epoch = (uint32_t)number(&rest, &good);
    text(&rest, a->address, sizeof a->address, &good);
    a->rank = (uint32_t)number(&rest, &good);
    a->workers = (uint32_t)number(&rest, &good);
    a->lanes = (uint32_t)number(&rest, &good);
    text(&rest, numerics, sizeof numerics, &good);
    a->integer = strcmp(numerics, "integer") == 0;
    a->floats = strcmp(numerics, "float32") == 0;
    a->quarter = strcmp(numerics, "quarter") == 0;
    *heartbeat_ms = (int)(number(&rest, &good) / 3);
    a->trees = (uint32_t)number(&rest, &good);
    if (!good || a->trees == 0 || a->trees > NR_TREES || a->workers < 2 || a->rank >= a->workers || a->epoch == 0 ||
        (a->lanes != 64 && a->lanes != 256) || *heartbeat_ms < 1)
        return false;
    for (uint32_t i = 0; i < a->trees; i++) {
        struct nr_tree *tree = &a->tree[i];
        tree->tree = (uint32_t)number(&rest, &good);
        tree->slots = (uint32_t)number(&rest, &good);
        tree->window = (uint32_t)number(&rest, &good);
        tree->share = (double)number(&rest, &good) / 1e9;
        if (!good || tree->window < 4 || 2 * (uint64_t)tree->window > tree->slots) return false;
    }
    return rest == NULL;
}

static bool read_ring(char *rest, struct nr_ring *r) {
    bool good = true;
    r->epoch = (uint32_t)number(&rest, &good);
    r->min_calls = number(&rest, &good);
    r->max_calls = number(&rest, &good);
    r->source_rank = (uint32_t)number(&rest, &good);
    r->trees = (uint32_t)number(&rest, &good);
    if (!good || r->trees == 0 || r->trees > NR_TREES) return false;
    for (uint32_t i = 0; i < r->trees; i++) {
        struct nr_neighbors *n = &r->tree[i];
        n->tree = (uint32_t)number(&rest, &good);
        text(&rest, n->successor_ip, sizeof n->successor_ip, &good);
        n->successor_qpn = (uint32_t)number(&rest, &good);
        text(&rest, n->predecessor_ip, sizeof n->predecessor_ip, &good);
        n->predecessor_qpn = (uint32_t)number(&rest, &good);
        n->predecessor_psn = (uint32_t)number(&rest, &good);
    }
    return good && rest == NULL;
}

static bool read_departures(char *rest, uint32_t *epoch, struct nr_departures *left) {
    bool good = true;
    *epoch = (uint32_t)number(&rest, &good);
    left->call_limit = number(&rest, &good);
    left->is_final = number(&rest, &good) != 0;
    left->are_present = number(&rest, &good) != 0;
    left->calls = number(&rest, &good);
    text(&rest, left->hosts, sizeof left->hosts, &good);
    return good && rest == NULL && left->hosts[0] != '\0';
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

static void on_line(struct nr_control *c, char *line) {
    char *rest = line, *word = strsep(&rest, " ");
    pthread_mutex_lock(&c->lock);
    struct nr_assignment assignment = {0};
    struct nr_ring ring = {0};
    struct nr_departures left = {0};
    uint32_t epoch = 0;
    if (strcmp(word, "assign") == 0 && read_assignment(rest, &assignment, &c->heartbeat_ms))
        c->assignment = assignment;
    else if (strcmp(word, "left") == 0 && read_departures(rest, &epoch, &left)) {
        if (epoch == c->assignment.epoch) c->assignment.left = left;
    } else if (strcmp(word, "ring") == 0 && read_ring(rest, &ring))
        c->ring = ring;
    else if (strcmp(word, "ended") == 0)
        fail(c, NR_JOB_ENDED, "%s", rest == NULL ? "the job has ended" : rest);
    else
        fail(c, NR_ASSIGNMENT, "the agent's line '%.60s' is not one of the protocol's", line);
    pthread_mutex_unlock(&c->lock);
    uint64_t one = 1;
    if (write(c->wake, &one, sizeof one) < 0) return; /* full: it is readable anyway */
}

static void *read_lines(void *context) {
    struct nr_control *c = context;
    char line[LINE_BYTES];
    size_t held = 0;
    for (;;) {
        struct pollfd watched[2] = {{c->stream, POLLIN, 0}, {c->stop, POLLIN, 0}};
        int ready = poll(watched, 2, c->heartbeat_ms);
        if (ready < 0 && errno != EINTR) break;
        if (watched[1].revents) return NULL;
        if (nr_control_send(c, "alive") != NR_OK) break;
        if (ready <= 0 || !watched[0].revents) continue;
        ssize_t got = read(c->stream, line + held, sizeof line - 1 - held);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) break;
        held += (size_t)got;
        line[held] = '\0';
        char *begin = line, *end;
        while ((end = strchr(begin, '\n')) != NULL) {
            *end = '\0';
            on_line(c, begin);
            begin = end + 1;
        }
        held -= (size_t)(begin - line);
        memmove(line, begin, held);
        if (held == sizeof line - 1) break; /* longer than any line */
    }
    pthread_mutex_lock(&c->lock);
    fail(c, NR_AGENT, "the connection to the agent is lost");
    pthread_mutex_unlock(&c->lock);
    uint64_t one = 1;
    if (write(c->wake, &one, sizeof one) < 0) return NULL;
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

enum nr_error nr_control_open(struct nr_control **control, const char *agent, char reason[NR_REASON_BYTES]) {
    struct nr_control *c = calloc(1, sizeof *c);
    *control = NULL;
    if (c == NULL) return NR_MEMORY;
    c->heartbeat_ms = FIRST_HEARTBEAT_MS;
    pthread_mutex_init(&c->lock, NULL);
    c->stream = open_stream(agent);
    if (c->stream >= 0) fcntl(c->stream, F_SETFL, fcntl(c->stream, F_GETFL) | O_NONBLOCK); /* writes never block */
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->stream < 0 || c->wake < 0 || c->stop < 0) {
        snprintf(reason, NR_REASON_BYTES, "no agent at %s: %s", agent, strerror(errno));
    } else if (nr_control_send(c, "hello 2") != NR_OK || pthread_create(&c->thread, NULL, read_lines, c) != 0) {
        snprintf(reason, NR_REASON_BYTES, "the agent at %s reads nothing", agent);
    } else {
        *control = c;
        return NR_OK;
    }
    int open_ones[] = {c->stream, c->wake, c->stop};
    for (int i = 0; i < 3; i++)
        if (open_ones[i] >= 0) close(open_ones[i]);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NR_AGENT;
}

void nr_control_close(struct nr_control *c) {
    if (c == NULL) return;
    uint64_t one = 1;
    if (write(c->stop, &one, sizeof one) < 0) abort(); /* a fresh counter takes a one */
    pthread_join(c->thread, NULL);
    close(c->stream);
    close(c->wake);
    close(c->stop);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int nr_control_descriptor(struct nr_control *c) { return c->wake; }

/* A closed connection is an error, not a signal. */
static ssize_t put(int stream, const char *bytes, size_t count) {
    ssize_t n = send(stream, bytes, count, MSG_NOSIGNAL);
    return n < 0 && errno == ENOTSOCK ? write(stream, bytes, count) : n;
}

static enum nr_error send_line(struct nr_control *c, const char *line, bool last) {
    char with_end[LINE_BYTES];
    int size = snprintf(with_end, sizeof with_end, "%s\n", line), sent = 0;
    pthread_mutex_lock(&c->lock);
    if (c->left) size = 0;
    c->left = c->left || last;
    while (sent < size) {
        struct pollfd capacity = {c->stream, POLLOUT, 0};
        ssize_t n = put(c->stream, with_end + sent, (size_t)(size - sent));
        if (n > 0) sent += (int)n;
        if (n < 0 && errno == EAGAIN && poll(&capacity, 1, MAX_WAIT_MS) > 0 && capacity.revents & POLLOUT) continue;
        if (n < 0 && errno != EINTR) break;
    }
    pthread_mutex_unlock(&c->lock);
    return sent == size ? NR_OK : NR_AGENT;
}

enum nr_error nr_control_send(struct nr_control *c, const char *line) { return send_line(c, line, false); }

enum nr_error nr_control_leave(struct nr_control *c, uint64_t calls) {
    char line[64];
    snprintf(line, sizeof line, "leave %llu", (unsigned long long)calls);
    return send_line(c, line, true);
}

enum nr_error nr_control_poll(struct nr_control *c, struct nr_assignment *assignment, struct nr_ring *ring,
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
