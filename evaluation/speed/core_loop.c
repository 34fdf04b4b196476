/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Processor time of softswitch's core for a packet, without I/O, beside a bare loop over the same lanes. core_ns.py calls it.
 * Frames lie in a pool as a card would leave them: a run of chunks of host 1, the same chunks of host 2, and so on. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arith.h"
#include "bits.h"
#include "switch.h"

enum { RUN = 16, SPACE = 2304, SENT_BYTES = 256 * 1024, BATCH = 64, TOGETHER = 100 };

struct load {
    struct ss_switch *sw;
    const uint8_t *frames[16];
    uint32_t bytes, hosts, slots, tag_at, slot_at, lanes_at, lanes, chunks; /* chunks: of a pass, in runs */
    uint32_t shard, shards; /* the runs of slots are dealt out to the shards: slots / shards are this one's */
};

struct sent {
    uint8_t *buffers; /* a ring, as a card's */
    uint32_t at;
    uint64_t frames;
};

static double cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* An earlier core has no such function, and its frames are copied. */
#pragma weak ss_set_buffer
void ss_set_buffer(struct ss_switch *sw, uint8_t *(*buffer)(void *, uint32_t, uint32_t));

static uint8_t *on_buffer(void *context, uint32_t port, uint32_t bytes) {
    const struct sent *sent = context;
    (void)port;
    (void)bytes;
    return sent->buffers + sent->at;
}

static void on_send(void *context, uint32_t port, const uint8_t *data, uint32_t bytes) {
    struct sent *sent = context;
    (void)port;
    if (data != sent->buffers + sent->at) memcpy(sent->buffers + sent->at, data, bytes);
    sent->at += SPACE;
    if (sent->at + SPACE > SENT_BYTES) sent->at = 0;
    sent->frames++;
}

/* The host and the chunk of a packet of the pool. */
static uint32_t host_of(const struct load *load, uint32_t packet) { return packet / RUN % load->hosts; }
static uint32_t chunk_of(const struct load *load, uint32_t packet) { return packet / (RUN * load->hosts) * RUN + packet % RUN; }

static void number(const struct load *load, uint8_t *pool, uint32_t first_chunk) {
    uint32_t first;
    memcpy(&first, load->frames[0] + load->tag_at, sizeof first);
    for (uint32_t i = 0; i < load->chunks * load->hosts; i++) {
        uint32_t chunk = first_chunk + chunk_of(load, i);
        uint32_t run = chunk / RUN * load->shards + load->shard;
        uint32_t tag = htonl(ntohl(first) + run * RUN / load->slots);
        uint16_t slot = htons((uint16_t)(run * RUN % load->slots + chunk % RUN));
        memcpy(pool + (uint64_t)i * SPACE + load->tag_at, &tag, sizeof tag);
        memcpy(pool + (uint64_t)i * SPACE + load->slot_at, &slot, sizeof slot);
    }
}

static double core_pass(const struct load *load, const uint8_t *pool) {
    uint32_t packets = load->chunks * load->hosts;
    double start = cpu_ns();
    for (uint32_t i = 0; i < packets; i += BATCH) {
        ss_begin(load->sw);
        for (uint32_t j = i; j < packets && j < i + BATCH; j++) {
#ifdef SS_FRAMES_AHEAD
            if (j + SS_FRAMES_AHEAD < packets) ss_prefetch_frame(pool + (uint64_t)(j + SS_FRAMES_AHEAD) * SPACE, load->bytes);
#endif
            ss_receive(load->sw, host_of(load, j) + 1, pool + (uint64_t)j * SPACE, load->bytes, 1000);
        }
        ss_end(load->sw);
    }
    return (cpu_ns() - start) / packets;
}

static void add(uint32_t *restrict slot, const uint8_t *restrict lanes, uint32_t count) {
#pragma GCC ivdep
    for (size_t i = 0; i < count; i++) {
        /* gcc makes no vectors of a load below the if. */
        int32_t sum = (int32_t)slot[i], lane = (int32_t)ss_ld32(lanes + 4 * i);
        if ((sum != INT32_MAX) & (sum != INT32_MIN)) sum = ss_sadd32(sum, lane);
        slot[i] = (uint32_t)sum;
    }
}

/* Reads the same frames, adds to slots, and writes as many frames of sums. */
static double bare_pass(const struct load *load, const uint8_t *pool, uint32_t *slots, uint32_t first_chunk,
                        struct sent *sent) {
    uint32_t packets = load->chunks * load->hosts;
    double start = cpu_ns();
    for (uint32_t i = 0; i < packets; i++) {
        uint32_t *slot = slots + (uint64_t)((first_chunk + chunk_of(load, i)) % (load->slots / load->shards)) * load->lanes;
        add(slot, pool + (uint64_t)i * SPACE + load->lanes_at, load->lanes);
        for (uint32_t port = 1; host_of(load, i) + 1 == load->hosts && port <= load->hosts; port++)
            on_send(sent, port, (const uint8_t *)slot, load->lanes * 4);
    }
    return (cpu_ns() - start) / packets;
}

/* What a thread of the data plane runs, or the caller alone. Its chunks are those of its share of the slots. */
struct worker {
    struct load load;
    pthread_t thread;
    pthread_barrier_t *together; /* all begin every TOGETHER passes together */
    uint32_t passes;
    double *core, *bare;
    int64_t missing;
};

static void *work(void *given) {
    struct worker *w = given;
    const struct load *load = &w->load;
    uint8_t *pool = aligned_alloc(64, (uint64_t)load->chunks * load->hosts * SPACE);
    struct sent sent = {.buffers = aligned_alloc(64, SENT_BYTES)};
    uint32_t *slots = calloc((uint64_t)load->slots * load->lanes, sizeof *slots);
    if (!pool || !sent.buffers || !slots) abort();
    memset(sent.buffers, 0, SENT_BYTES);
    for (uint32_t i = 0; i < load->chunks * load->hosts; i++)
        memcpy(pool + (uint64_t)i * SPACE, load->frames[host_of(load, i)], load->bytes);
    ss_set_tx(load->sw, on_send, &sent);
    if (ss_set_buffer) ss_set_buffer(load->sw, on_buffer);
    uint64_t by_core = 0;
    for (uint32_t pass = 0; pass < w->passes; pass++) {
        number(load, pool, pass * load->chunks);
        uint64_t before = sent.frames;
        if (pass % TOGETHER == 0) pthread_barrier_wait(w->together);
        w->core[pass] = core_pass(load, pool);
        by_core += sent.frames - before;
        w->bare[pass] = bare_pass(load, pool, slots, pass * load->chunks, &sent);
    }
    ss_set_tx(load->sw, NULL, NULL);
    free(pool);
    free(sent.buffers);
    free(slots);
    w->missing = (int64_t)by_core - (int64_t)w->passes * load->chunks * load->hosts;
    return NULL;
}

/* Fills nanoseconds of each pass of each of `threads`, in turn of the core and of the bare loop. Returns the frames that the
 * core sent and did not receive: 0 if it completes each chunk. */
int64_t core_loop(const struct load *load, uint32_t passes, uint32_t threads, double *core, double *bare) {
    struct worker workers[SS_MAX_THREADS];
    pthread_barrier_t together;
    int64_t missing = 0;
    pthread_barrier_init(&together, NULL, threads);
    for (uint32_t i = 0; i < threads; i++) {
        uint64_t first = (uint64_t)i * passes;
        workers[i] = (struct worker){*load, 0, &together, passes, core + first, bare + first, 0};
        workers[i].load.sw = ss_switch_shard(load->sw, i);
        workers[i].load.shard = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) abort();
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        missing += workers[i].missing;
    }
    pthread_barrier_destroy(&together);
    return missing;
}
