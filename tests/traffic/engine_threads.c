/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Two engines and a parameter server of two threads over loopback, each engine used by as many threads as a worker has, with a new epoch in the
 * middle; as test_engine_sanitized.py builds it, under the thread sanitizer. Arguments: how many calls; with a second one
 * nothing steers, so that packets are handed over. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io/engine.h"
#include "server/root.h"

enum {
    WORKERS = 2,
    LANES = 16,
    SLOTS = 64,
    SHARDS = 2,
    ELEMENTS = 700,
    PORT = 61691,
    TREE = 5,
    FOREGROUND = 5,
    CALLS_MAX = 1000
};

struct worker {
    struct nf_engine *engine;
    int rank, calls, over; /* `over` (atomic): those that the finisher saw */
    float arrays[CALLS_MAX][ELEMENTS];
    pthread_t submitter, finisher, watcher;
};

static struct nf_root *roots[SHARDS];
static int root_wakes[SHARDS], epoch_of_root = 1, ended; /* atomic */
static struct worker workers[WORKERS];

static void check(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct sockaddr_in address(int host) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = {htonl(0x7F420000u + (uint32_t)host)}};
}

static int open_socket(int host, int peer) {
    struct sockaddr_in here = address(host), there = address(peer);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    int on = 1;
    check(peer || !setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), "share");
    check(fd >= 0 && !bind(fd, (struct sockaddr *)&here, sizeof here), "bind");
    if (peer) check(!connect(fd, (struct sockaddr *)&there, sizeof there), "connect");
    return fd;
}

static void *serve(void *shard) {
    struct nf_root *root = *(struct nf_root **)shard;
    uint16_t children[WORKERS];
    int64_t starts[WORKERS + 1] = {0};
    int planted = 0;
    for (int i = 0; i < WORKERS; i++) children[i] = (uint16_t)i;
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        int epoch = __atomic_load_n(&epoch_of_root, __ATOMIC_ACQUIRE);
        if (epoch != planted) {
            nf_root_start_epoch(root, planted = epoch);
            check(!nf_root_add_tree(root, TREE, SLOTS, children, WORKERS, NULL, starts), "tree");
        }
        check(!nf_root_serve(root, 1), "serve");
    }
    return NULL;
}

static void wake_root(void) {
    uint64_t one = 1;
    for (int i = 0; i < SHARDS; i++) check(write(root_wakes[i], &one, sizeof one) == sizeof one, "wake");
}

static void assign(struct worker *w, int epoch) {
    struct nf_assignment a = {.epoch = epoch, .lanes = LANES, .workers = WORKERS, .rounds = 1 << 20, .congestion = 0};
    a.wire_bytes = 150;
    a.tree_count = 1;
    a.timing = (struct nf_timing){0.05, 0.04, 1, 0.0005, 0.025, 0.004, 0.001};
    a.trees[0] = (struct nf_tree_spec){
        .tree = TREE, .child = w->rank, .slots = SLOTS, .window = SLOTS / 2, .share = 1, .cumulative_share = 1};
    nf_engine_close_sockets(w->engine);
    int32_t fd = open_socket(1 + w->rank, 9);
    check(!nf_engine_assign(w->engine, &a, &fd, 1), "assign");
}

static struct nf_call *submit(struct worker *w, int number, int background) {
    for (int i = 0; i < ELEMENTS; i++) w->arrays[number][i] = (float)(number + i);
    struct nf_request r = {.array = w->arrays[number],
                           .elements = ELEMENTS,
                           .dtype = NF_FLOAT32,
                           .scheme = NF_BLOCK_FLOAT,
                           .deadline = seconds() + 100};
    struct nf_call *call = nf_engine_submit(w->engine, &r, background);
    check(call != NULL, "submit");
    return call;
}

static void finish(struct worker *w, struct nf_call *call) {
    struct nf_outcome outcome;
    nf_engine_release(w->engine, call, &outcome);
    if (outcome.status != NF_DONE) fprintf(stderr, "status %d: %s\n", (int)outcome.status, outcome.message);
    check(outcome.status == NF_DONE, "a call");
}

static void *submit_all(void *worker) {
    struct worker *w = worker;
    for (int i = 0; i < w->calls; i++) submit(w, i, 1);
    for (int i = w->calls; i < w->calls + FOREGROUND; i++) {
        struct nf_call *call = submit(w, i, 0);
        while (nf_engine_wait(w->engine, call, seconds() + 0.05) == NF_PENDING) continue;
        finish(w, call);
    }
    return NULL;
}

static void *finish_all(void *worker) {
    struct worker *w = worker;
    while (__atomic_load_n(&w->over, __ATOMIC_RELAXED) < w->calls) {
        struct nf_call *call = nf_engine_next_completed(w->engine, seconds() + 0.05);
        if (!call) continue;
        finish(w, call);
        __atomic_add_fetch(&w->over, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void *watch(void *worker) {
    struct worker *w = worker;
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        struct nf_totals totals;
        struct nf_tree_report reports[2];
        nf_engine_totals(w->engine, &totals);
        nf_engine_reports(w->engine, reports, 2);
        check(!nf_engine_error(w->engine), "no error");
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv) {
    check(argc >= 2 && atoi(argv[1]) <= CALLS_MAX - FOREGROUND, "usage: engine_threads CALLS [unsteered]");
    static int64_t verdicts[SHARDS][NF_VERDICTS];
    struct sockaddr_in hosts[WORKERS] = {address(1), address(2)};
    pthread_t servers[SHARDS];
    int fds[SHARDS];
    struct nf_shards *shards = nf_shards_create(SHARDS, LANES);
    check(shards != NULL, "shards");
    for (int i = 0; i < SHARDS; i++) {
        root_wakes[i] = eventfd(0, EFD_NONBLOCK);
        fds[i] = open_socket(9, 0);
        roots[i] = nf_root_create(fds[i], root_wakes[i], LANES, PORT, hosts, WORKERS, verdicts[i]);
        check(roots[i] != NULL, "server");
        nf_root_set_shard(roots[i], shards, i);
    }
    if (argc == 2) check(!nf_shards_steer(fds[0], SHARDS), "steer"); /* else the kernel chooses by flow */
    for (int i = 0; i < SHARDS; i++) check(!pthread_create(&servers[i], NULL, serve, &roots[i]), "server");
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.engine = nf_engine_create(), .rank = i, .calls = atoi(argv[1])};
        check(w->engine != NULL, "engine");
        assign(w, 1);
        check(!pthread_create(&w->submitter, NULL, submit_all, w) && !pthread_create(&w->finisher, NULL, finish_all, w) &&
                  !pthread_create(&w->watcher, NULL, watch, w),
              "threads");
    }
    while (__atomic_load_n(&workers[0].over, __ATOMIC_ACQUIRE) < workers[0].calls / 2)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    __atomic_store_n(&epoch_of_root, 2, __ATOMIC_RELEASE);
    wake_root();
    for (int i = 0; i < WORKERS; i++) assign(&workers[i], 2);
    for (int i = 0; i < WORKERS; i++)
        check(!pthread_join(workers[i].submitter, NULL) && !pthread_join(workers[i].finisher, NULL), "join");
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    wake_root();
    int64_t handed_over = 0;
    for (int i = 0; i < SHARDS; i++) {
        pthread_join(servers[i], NULL);
        handed_over += nf_root_handed_over(roots[i]);
        check(verdicts[i][NF_RESULT_SENT] > 0, "results of each shard");
        nf_root_destroy(roots[i]);
        close(fds[i]);
    }
    nf_shards_destroy(shards);
    check((handed_over > 0) == (argc > 2), "what is handed over");
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        pthread_join(w->watcher, NULL);
        nf_engine_stop(w->engine);
        nf_engine_destroy(w->engine);
        for (int k = 0; k < w->calls + FOREGROUND; k++)
            for (int e = 0; e < ELEMENTS; e++) check(w->arrays[k][e] == (float)(WORKERS * (k + e)), "a sum");
    }
    printf("%d calls at each of %d workers\n", workers[0].calls + FOREGROUND, WORKERS);
    return 0;
}
