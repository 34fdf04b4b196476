/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_controller.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "fake_verbs.h"

struct fake_controller control;

static void tell(int worker, const char *format, ...) {
    char line[2048];
    va_list words;
    va_start(words, format);
    int size = vsnprintf(line, sizeof line, format, words);
    va_end(words);
    if (control.streams[worker] >= 0) (void)!send(control.streams[worker], line, (size_t)size, MSG_NOSIGNAL);
}

static void assign(int worker) {
    char trees[512];
    int said = 0;
    for (int t = 0; t < control.trees; t++)
        said += snprintf(trees + said, sizeof trees - (size_t)said, " %d %d %d %d", t + 5, 2 * control.window, control.window,
                         1000000000 / control.trees);
    tell(worker, "assign %d 10.0.0.%d %d %d %d %s 300 %d%s\n", control.epoch, worker + 1, worker, control.present, LANES,
         control.numerics, control.trees, trees);
}

static void tell_departure(int takes_part) {
    unsigned long long limit = takes_part ? control.limit : 0;
    for (int w = 0; w + 1 < control.workers; w++)
        tell(w, "left %d %llu %d %d %llu h4\n", control.epoch, limit, control.departure == FINAL, takes_part, control.limit);
}

static void new_epoch(void) {
    control.epoch++;
    memset(control.known, 0, sizeof control.known);
    if (control.departure != FORBIDDEN && control.left > 0) control.present = control.workers - 1;
    fake_hosts(control.present);
    for (int w = 0; w < control.present; w++) assign(w);
    if (control.departure == FINAL && control.left > 0) tell_departure(0);
}

/* Numbers of a worker's ends: tree t's out QPN, in QPN, PSN at 3 t. */
static void read_ends(int worker, unsigned numbers[3 * 4]) {
    char *rest = control.ends[worker], *end;
    for (int t = 0; t < control.trees; t++) {
        strtoul(rest, &end, 10);
        for (int i = 0; i < 3; i++) numbers[3 * t + i] = (unsigned)strtoul(end, &end, 10);
        rest = end;
    }
}

static void tell_rings(void) {
    unsigned long long least = control.calls[0], most = control.calls[0];
    int giver = 0;
    for (int w = 0; w < control.present; w++) {
        if (!control.known[w]) return;
        if (control.calls[w] < least) least = control.calls[w];
        if (control.calls[w] > most) most = control.calls[w], giver = w;
    }
    control.gave = control.gave || least != most;
    unsigned of[MOST][3 * 4];
    for (int w = 0; w < control.present; w++) read_ends(w, of[w]);
    for (int w = 0; w < control.present; w++) {
        int next = (w + 1) % control.present, before = (w + control.present - 1) % control.present, said = 0;
        char trees[1024];
        for (int t = 0; t < control.trees; t++)
            said += snprintf(trees + said, sizeof trees - (size_t)said, " %d 10.0.0.%d %u 10.0.0.%d %u %u", t + 5, next + 1,
                             of[next][3 * t + 1], before + 1, of[before][3 * t], of[before][3 * t + 2]);
        if (control.epoch != control.short_epoch || w + 1 < control.present)
            tell(w, "ring %d %llu %llu %d %d%s\n", control.epoch, least, most, giver, control.trees, trees);
    }
    control.linked = true;
    if (control.epoch == control.short_epoch) {
        usleep(200000); /* the others are in their next call then, most often */
        new_epoch();
    }
}

static void leave(int worker, unsigned long long calls) {
    control.has_left[worker] = true;
    control.left++;
    if (control.departure != FORBIDDEN && control.left == 1) {
        control.limit = calls;
        tell_departure(1);
        if (control.is_awaiting) new_epoch();
        if (control.releases) {
            usleep(200000); /* the others have heard of it then, most often */
            fake_release();
        }
    }
    if (control.cut && worker == 0) shutdown(control.streams[0], SHUT_RDWR);
    if (control.left == control.send_again) {
        usleep(200000); /* a worker that does not wait for it is gone then; one that does has renewed its lease of 300 ms */
        fake_send_again();
    }
    for (int w = 0; w < control.workers && control.left == control.workers; w++)
        tell(w, "ended job j is done: every worker left\n");
}

/* They are in a call then, and have sent. */
static void end_job_soon(void) {
    if (!control.linked || control.ends_after == 0 || --control.ends_after > 0) return;
    for (int w = 1; w < control.workers; w++) tell(w, "ended job j is canceled\n");
}

static void hear(int worker, char *line) {
    int epoch, trees, used = 0;
    unsigned long long calls;
    CHECK(!control.has_left[worker], "'%s' behind the last word", line);
    if (strcmp(line, "alive") == 0) end_job_soon();
    if (strcmp(line, "hello 2") == 0) assign(worker);
    if (sscanf(line, "qps %d %llu %d%n", &epoch, &calls, &trees, &used) == 3 && epoch == control.epoch) {
        snprintf(control.ends[worker], sizeof control.ends[worker], "%s", line + used);
        control.calls[worker] = calls;
        control.known[worker] = true;
        tell_rings();
    }
    if (sscanf(line, "new-epoch %d", &epoch) == 1 && epoch == control.epoch) {
        control.is_awaiting = control.awaits_leave && control.left == 0;
        if (!control.is_awaiting) new_epoch();
    }
    if (sscanf(line, "leave %llu", &calls) == 1) leave(worker, calls);
}

static void *attend(void *nothing) {
    static char held[MOST][4096];
    static size_t sizes[MOST];
    int gone = 0;
    for (int w = 0; w < control.workers; w++) control.streams[w] = accept(control.listeners[w], NULL, NULL);
    while (gone < control.workers) {
        struct pollfd watched[MOST];
        for (int w = 0; w < control.workers; w++) watched[w] = (struct pollfd){control.streams[w], POLLIN, 0};
        poll(watched, (nfds_t)control.workers, -1);
        for (int w = 0; w < control.workers; w++) {
            if (!watched[w].revents) continue;
            ssize_t got = read(control.streams[w], held[w] + sizes[w], sizeof held[w] - 1 - sizes[w]);
            if (got <= 0) {
                close(control.streams[w]);
                control.streams[w] = -1;
                gone++;
                continue;
            }
            sizes[w] += (size_t)got;
            held[w][sizes[w]] = '\0';
            char *begin = held[w], *end;
            while ((end = strchr(begin, '\n')) != NULL) {
                *end = '\0';
                hear(w, begin);
                begin = end + 1;
            }
            sizes[w] -= (size_t)(begin - held[w]);
            memmove(held[w], begin, sizes[w]);
        }
    }
    return nothing;
}

void fake_controller_path(char *path, size_t room, int worker) { snprintf(path, room, "%s/%d", control.folder, worker); }

void fake_controller_start(int workers, int trees, int window, const char *numerics) {
    control.workers = workers, control.trees = trees, control.window = window, control.numerics = numerics;
    control.epoch = 1, control.present = workers;
    for (int w = 0; w < workers; w++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        fake_controller_path(address.sun_path, sizeof address.sun_path, w);
        control.listeners[w] = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(bind(control.listeners[w], (struct sockaddr *)&address, sizeof address) == 0, "bind");
        listen(control.listeners[w], 1);
    }
    pthread_create(&control.thread, NULL, attend, NULL);
}
