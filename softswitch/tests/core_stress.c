/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* core_stress PROGRAM.so PROGRAM.so SECONDS THREADS: the real core with its locks. Threads run frames, as engines do; others
 * change, read and swap the programs meanwhile. Built with ThreadSanitizer. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../softswitch/core/internal.h"

enum { CONTROLS = 3, PORTS = 4 };

static atomic_int stopping;
static struct ss_switch *sw;
static struct ss_pipeline *pipelines[2];

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sent(void *context, uint32_t port, const uint8_t *data, uint32_t length) {
    *(uint64_t *)context += port + data[0] + length;
}

static void hand_over(void *context, uint32_t shard, uint32_t port, const uint8_t *data, uint32_t length) {
    *(uint64_t *)context += shard + port + data[0] + length;
}

static void *run_frames(void *context) {
    struct ss_switch *shard = context;
    uint64_t total = 0;
    ss_set_tx(shard, sent, &total);
    ss_set_handover(shard, hand_over, &total);
    static const uint16_t kinds[] = {0x88b5, 0x88b6, 0x1234, 0x88b7, 0x88b8};
    uint8_t frame[80] = {0};
    for (unsigned i = 0; !atomic_load(&stopping); i++) {
        ss_begin(shard);
        for (unsigned j = 0; j < 16; j++) {
            uint16_t kind = kinds[(i + j) % 5];
            frame[5] = (uint8_t)j;
            frame[12] = (uint8_t)(kind >> 8);
            frame[13] = (uint8_t)kind;
            ss_receive(shard, 1 + j % PORTS, frame, sizeof frame, clock_ns());
        }
        ss_service(shard, clock_ns());
        ss_end(shard);
    }
    ss_set_tx(shard, NULL, NULL);
    return (void *)(uintptr_t)total;
}

static void change(struct ss_pipeline *pl, unsigned *seed) {
    const struct ss_program *g = pl->program;
    struct ss_counter counter = {1, 2};
    struct ss_replica replicas[2] = {{1, 1}, {2, 2}};
    uint64_t config[4] = {1, 1, 2, 2}, words[16] = {0}, mask[16];
    uint8_t cells[64];
    memset(mask, 0xff, sizeof mask);
    struct ss_action_spec action = {SS_ACTION, 0, 1, words};
    uint32_t table = g->n_tables ? (uint32_t)rand_r(seed) % g->n_tables : 0;
    words[0] = (uint64_t)rand_r(seed) % 8;
    switch (rand_r(seed) % 9) {
    case 0:
        if (g->n_tables && !g->tables[table].ranges) {
            int64_t handle = ss_entry_add(pl, table, words, mask, 1, words, &action, 1000);
            if (handle >= 0) ss_entry_del(pl, table, (uint32_t)handle);
        }
        break;
    case 1:
        ss_counter_io(pl, 0, 0, 1, &counter, rand_r(seed) % 2);
        break;
    case 2:
        ss_meter_set(pl, 0, 0, 1, config);
        break;
    case 3:
        ss_register_io(pl, 0, 0, 1, cells, 0);
        break;
    case 4:
        ss_group_replicas(pl, 1, replicas, 2);
        break;
    case 5:
        ss_clone_replicas(pl, 1, replicas, 1, 0);
        break;
    case 6:
        ss_digest_enable(pl, 1, rand_r(seed) % 2);
        break;
    case 7:
        ss_vset_set(pl, 0, words, 0);
        break;
    case 8:
        ss_default_set(pl, table, NULL);
        break;
    }
}

static void *control(void *context) {
    unsigned seed = (unsigned)(uintptr_t)context;
    struct ss_stats stats;
    struct ss_port_stats port;
    while (!atomic_load(&stopping)) {
        change(pipelines[rand_r(&seed) % 2], &seed);
        if (rand_r(&seed) % 8) continue;
        ss_stats_get(sw, &stats);
        ss_port_stats_get(sw, 1 + (uint32_t)rand_r(&seed) % PORTS, &port);
        ss_port_set_up(sw, (uint32_t)rand_r(&seed) % PORTS, rand_r(&seed) % 2);
    }
    return NULL;
}

static void *swap(void *context) {
    static uint8_t data[SS_DIGEST_MAX];
    struct ss_event event;
    for (unsigned i = 0; !atomic_load(&stopping); i++) {
        ss_swap(sw, pipelines[i % 2]);
        while (ss_event_take(sw, &event, data) >= 0 && !atomic_load(&stopping)) {
        }
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    return context;
}

int main(int count, char **arguments) {
    char error[256] = "";
    pthread_t threads[CONTROLS + 1], data[SS_MAX_THREADS];
    uint64_t total = 0;
    if (count != 5) return 2;
    uint32_t shards = (uint32_t)atoi(arguments[4]);
    sw = ss_switch_new(511, clock_ns(), 1);
    if (ss_set_threads(sw, shards)) return 1;
    for (int i = 0; i < 2; i++)
        if (!(pipelines[i] = ss_pipeline_open(arguments[1 + i], 1, shards, error, sizeof error)))
            return fprintf(stderr, "%s\n", error), 1;
    for (uint32_t i = 0; i < shards; i++) pthread_create(&data[i], NULL, run_frames, ss_switch_shard(sw, i));
    pthread_create(&threads[0], NULL, swap, NULL);
    for (uintptr_t i = 0; i < CONTROLS; i++) pthread_create(&threads[1 + i], NULL, control, (void *)(i + 1));
    nanosleep(&(struct timespec){atoi(arguments[3]), 0}, NULL);
    atomic_store(&stopping, 1);
    for (int i = 0; i < CONTROLS + 1; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < shards; i++) {
        void *sum;
        pthread_join(data[i], &sum);
        total += (uintptr_t)sum;
    }
    ss_swap(sw, NULL);
    ss_pipeline_close(pipelines[0]);
    ss_pipeline_close(pipelines[1]);
    ss_switch_free(sw);
    printf("done %llu\n", (unsigned long long)total);
    return 0;
}
