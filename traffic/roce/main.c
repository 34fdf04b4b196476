/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* netfold-roce: joins a RoCE job, reduces arrays that every worker can compute, checks every element, and prints a line of JSON
 * for each call. Exit codes: 0 success, 1 an error (one line on standard error), 2 usage, 3 a wrong element. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker.h"

static const char usage[] =
    "netfold-roce --agent unix:PATH|HOST:PORT|DEVICE [--sizes BYTES,...] [--iterations N] [--float] [--timeout S]\n"
    "             [--join-timeout S] [--device NAME] [--rc-timeout T] [--rc-retries N] [--first-psn P] [--epoch-packets N]\n";

struct wanted {
    struct nr_options options;
    const char *sizes;
    int iterations;
    enum nr_dtype dtype;
    double timeout, join_timeout;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -1000 ... 1000, different for each worker, element and call. */
static int32_t element(size_t i, int rank, int round) {
    uint32_t mixed = (uint32_t)i * 2654435761u + (uint32_t)rank * 40503u + (uint32_t)round * 7919u;
    return (int32_t)((mixed ^ mixed >> 15) % 2001) - 1000;
}

static void fill(void *array, size_t count, enum nr_dtype dtype, int rank, int round) {
    for (size_t i = 0; i < count; i++) {
        if (dtype == NR_INT32)
            ((int32_t *)array)[i] = element(i, rank, round);
        else
            ((float *)array)[i] = (float)element(i, rank, round) / 1024.0f;
    }
}

/* Number of wrong elements; floats within the error bound of docs/reference/protocol.md, section 6, are right. */
static size_t wrong(const void *array, size_t count, enum nr_dtype dtype, int workers, int round) {
    int h = (int)ceil(log2(workers));
    double allowed = workers * ldexp(1.0, h - 31) * 1.0 + 1e-7 * workers;
    size_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t sum = 0;
        for (int r = 0; r < workers; r++) sum += element(i, r, round);
        if (dtype == NR_INT32)
            bad += ((const int32_t *)array)[i] != sum;
        else
            bad += !(fabs(((const float *)array)[i] - (double)sum / 1024.0) <= allowed);
    }
    return bad;
}

static int failed(const struct nr_worker *worker, enum nr_error error) {
    static const char *names[] = {"ok",       "timeout",  "job ended", "agent",  "device", "assignment",
                                  "mismatch", "overflow", "numbers",   "memory", "left"};
    fprintf(stderr, "netfold-roce: %s: %s\n", names[error], nr_error_message(worker));
    return 1;
}

static int reduce(struct nr_worker *worker, const struct wanted *w, size_t bytes, int round, void *array) {
    size_t count = bytes / 4;
    fill(array, count, w->dtype, nr_rank(worker), round);
    double begin = now();
    enum nr_error error = nr_all_reduce(worker, array, count, w->dtype, NR_SUM, w->timeout);
    double seconds = now() - begin;
    if (error != NR_OK) return failed(worker, error);
    size_t bad = wrong(array, count, w->dtype, nr_workers(worker), round);
    struct nr_statistics s = nr_statistics(worker);
    printf("{\"bytes\": %zu, \"seconds\": %.6f, \"wrong\": %zu, \"packets\": %llu, \"epochs\": %llu}\n", bytes, seconds, bad,
           (unsigned long long)s.packets, (unsigned long long)s.epochs);
    fflush(stdout);
    return bad == 0 ? 0 : 3;
}

static int run(struct nr_worker *worker, const struct wanted *w) {
    char *sizes = strdup(w->sizes), *rest = sizes, *word;
    int code = 0, round = 0;
    while (code == 0 && (word = strsep(&rest, ",")) != NULL) {
        size_t bytes = strtoull(word, NULL, 10);
        void *array = malloc(bytes + 4);
        for (int i = 0; i < w->iterations && code == 0; i++)
            code = array == NULL ? failed(NULL, NR_MEMORY) : reduce(worker, w, bytes, round++, array);
        free(array);
    }
    free(sizes);
    return code;
}

int main(int count, char **words) {
    static const struct option known[] = {
        {"agent", required_argument, NULL, 'a'},         {"sizes", required_argument, NULL, 's'},
        {"iterations", required_argument, NULL, 'i'},    {"float", no_argument, NULL, 'f'},
        {"timeout", required_argument, NULL, 't'},       {"join-timeout", required_argument, NULL, 'j'},
        {"device", required_argument, NULL, 'd'},        {"rc-timeout", required_argument, NULL, 'r'},
        {"rc-retries", required_argument, NULL, 'n'},    {"first-psn", required_argument, NULL, 'p'},
        {"epoch-packets", required_argument, NULL, 'e'}, {NULL, 0, NULL, 0},
    };
    struct wanted w = {.sizes = "4096", .iterations = 1, .dtype = NR_INT32, .timeout = 60, .join_timeout = 120};
    int option;
    while ((option = getopt_long(count, words, "", known, NULL)) != -1) {
        switch (option) {
        case 'a':
            w.options.agent = optarg;
            break;
        case 's':
            w.sizes = optarg;
            break;
        case 'i':
            w.iterations = atoi(optarg);
            break;
        case 'f':
            w.dtype = NR_FLOAT32;
            break;
        case 't':
            w.timeout = atof(optarg);
            break;
        case 'j':
            w.join_timeout = atof(optarg);
            break;
        case 'd':
            w.options.device = optarg;
            break;
        case 'r':
            w.options.timeout = atoi(optarg);
            break;
        case 'n':
            w.options.retries = atoi(optarg);
            break;
        case 'p':
            w.options.first_psn = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'e':
            w.options.epoch_packets = strtoull(optarg, NULL, 10);
            break;
        default:
            w.options.agent = NULL;
            optind = count + 1;
        }
    }
    if (w.options.agent == NULL || optind != count) {
        fputs(usage, stderr);
        return 2;
    }
    struct nr_worker *worker;
    enum nr_error error = nr_join(&worker, &w.options, w.join_timeout);
    int code = error == NR_OK ? run(worker, &w) : failed(worker, error);
    nr_leave(worker);
    return code;
}
