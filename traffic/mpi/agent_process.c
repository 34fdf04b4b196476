/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "agent_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"
#include "progress.h"

extern char **environ;

enum { AGENT_FD = 3 };

struct nm_agent {
    int stream;
    pid_t process;
    int32_t sockets[NM_SOCKETS_MAX];
    int64_t buffer[(sizeof(int64_t) + NM_TEXT_BYTES) / sizeof(int64_t) + 1];
};

/* The interpreter that this library was built with, unless the environment names another one. */
static char *interpreter(void) {
    char *given = getenv("NETFOLD_MPI_PYTHON");
    return given && *given ? given : NM_PYTHON;
}

/* The environment without the libraries that are preloaded into MPI programs. NULL: no memory. */
static char **agent_environment(void) {
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) copy[kept++] = environ[i];
    return copy;
}

static int spawn(pid_t *process, int stream, char **environment) {
    char *command[] = {interpreter(), "-P", "-m", "netfold.traffic.mpi.agent", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    /* A session of its own: what ends the ranks must not end the agent before it has told the controller. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, stream, AGENT_FD);
    posix_spawn_file_actions_addclosefrom_np(&files, AGENT_FD + 1);
    int error = posix_spawnp(process, command[0], &files, &attributes, command, environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
}

struct nm_agent *nm_agent_start(void) {
    int ends[2] = {-1, -1};
    struct nm_agent *a = calloc(1, sizeof *a);
    char **environment = agent_environment();
    int error = !a || !environment ? ENOMEM : 0;
    if (!error && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) error = errno;
    if (!error) {
        int theirs = ends[1];
        if (theirs == AGENT_FD) theirs = dup(ends[1]); /* else its close-on-exec flag would stay */
        error = spawn(&a->process, theirs, environment);
        if (theirs != ends[1]) close(theirs);
        close(ends[1]);
    }
    free(environment);
    if (!error) {
        a->stream = ends[0];
        return a;
    }
    if (ends[0] >= 0) close(ends[0]);
    free(a);
    errno = error;
    return NULL;
}

int nm_agent_send(struct nm_agent *a, const void *message, size_t size) {
    ssize_t sent;
    do {
        sent = send(a->stream, message, size, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size ? 0 : -1;
}

int nm_agent_send_text(struct nm_agent *a, int64_t type, const char *text) {
    size_t size = sizeof type + strlen(text) + 1;
    char *message = malloc(size);
    if (!message) return -1;
    memcpy(message, &type, sizeof type);
    strcpy(message + sizeof type, text);
    int result = nm_agent_send(a, message, size);
    free(message);
    return result;
}

int nm_agent_receive(struct nm_agent *a, struct nm_packet *packet, double seconds) {
    struct pollfd polled = {a->stream, POLLIN, 0};
    int ready = poll(&polled, 1, (int)(seconds * 1e3));
    if (ready <= 0) return ready < 0 && errno != EINTR ? -1 : 0;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int32_t) * NM_SOCKETS_MAX)];
    } control;
    struct iovec part = {a->buffer, sizeof a->buffer - 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t size = recvmsg(a->stream, &message, MSG_CMSG_CLOEXEC);
    if (size < (ssize_t)sizeof(int64_t)) return size < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : -1;
    ((char *)a->buffer)[size] = '\0';
    size_t count = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int32_t);
        memcpy(a->sockets, CMSG_DATA(header), count * sizeof(int32_t));
    }
    const char *text = (const char *)(a->buffer + 1);
    *packet = (struct nm_packet){a->buffer[0], text, a->buffer, (size_t)size, a->sockets, count};
    return 1;
}

/* Until the agent closes its end. A message that it sends to a closed stream would fail, and it would cancel the job. */
static void discard_messages(struct nm_agent *a, double until) {
    struct nm_packet packet;
    shutdown(a->stream, SHUT_WR);
    for (double left = until - nm_now(); left > 0; left = until - nm_now()) {
        int found = nm_agent_receive(a, &packet, left);
        if (found < 0) return;
        for (size_t i = 0; found && i < packet.socket_count; i++) close(packet.sockets[i]);
    }
}

void nm_agent_end(struct nm_agent *a, double seconds) {
    double until = nm_now() + seconds;
    struct timespec pause = {0, 5000000};
    discard_messages(a, until);
    close(a->stream);
    while (waitpid(a->process, NULL, WNOHANG) == 0) {
        if (nm_now() >= until) kill(a->process, SIGKILL);
        nanosleep(&pause, NULL); /* no descriptor of a process that glibc 2.35 and older could wait for */
    }
    free(a);
}
