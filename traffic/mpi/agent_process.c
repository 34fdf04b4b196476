/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "agent_process.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

extern char **environ;

enum { AGENT_FD = 3 };

struct nm_agent {
    struct na_channel *channel;
    pid_t process;
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

/* Passes the end `theirs` on to a new process. 0 or `errno`. */
static int spawn_with(pid_t *process, int theirs, char **environment) {
    int passed = theirs;
    if (passed == AGENT_FD) passed = dup(theirs); /* else its close-on-exec flag would stay */
    int error = spawn(process, passed, environment);
    if (passed != theirs) close(passed);
    return error;
}

struct nm_agent *nm_agent_start(void) {
    int ends[2] = {-1, -1};
    struct nm_agent *a = calloc(1, sizeof *a);
    char **environment = agent_environment();
    int error = !a || !environment ? ENOMEM : 0;
    if (!error && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) error = errno;
    if (!error && !(a->channel = na_channel_open(ends[0]))) error = ENOMEM;
    if (!error) error = spawn_with(&a->process, ends[1], environment);
    free(environment);
    if (ends[1] >= 0) close(ends[1]);
    if (!error) return a;
    if (a && a->channel)
        na_channel_close(a->channel);
    else if (ends[0] >= 0)
        close(ends[0]);
    free(a);
    errno = error;
    return NULL;
}

struct na_channel *nm_agent_channel(struct nm_agent *a) { return a->channel; }

/* Until the agent closes its end. A message that it sends to a closed stream would fail, and it would cancel the job. */
static void discard_messages(struct nm_agent *a, double until) {
    struct na_message message;
    na_channel_finish(a->channel);
    for (double left = until - nm_now(); left > 0; left = until - nm_now()) {
        int found = na_receive(a->channel, &message, left);
        if (found < 0) return;
        for (size_t i = 0; found && i < message.socket_count; i++) close(message.sockets[i]);
    }
}

void nm_agent_end(struct nm_agent *a, double seconds) {
    double until = nm_now() + seconds;
    struct timespec pause = {0, 5000000};
    discard_messages(a, until);
    na_channel_close(a->channel);
    while (waitpid(a->process, NULL, WNOHANG) == 0) {
        if (nm_now() >= until) kill(a->process, SIGKILL);
        nanosleep(&pause, NULL); /* no descriptor of a process that glibc 2.35 and older could wait for */
    }
    free(a);
}
