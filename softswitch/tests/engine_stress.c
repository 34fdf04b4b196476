/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* engine_stress SECONDS THREADS FOLDER INTERFACE INTERFACE: engines around a core that is only a wire between ports 1 and 2 with a
 * small queue for each thread, while another thread does all that a control plane may do to it, in any order. Built with a sanitizer. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#ifdef SS_DPDK
#include "dpdk/dpdk_device.h"
#endif

enum { CPU_PORT = 510, QUEUE = 32 };

struct ss_switch {
    ss_tx_fn tx;
    void *context;
    ss_handover_fn handover;
    void *handover_context;
    uint32_t thread;
    uint32_t queued;
    struct {
        uint32_t port, length;
        uint64_t due_ns;
        uint8_t data[2048];
    } queue[QUEUE];
};

void ss_set_tx(struct ss_switch *sw, ss_tx_fn tx, void *context) {
    sw->tx = tx;
    sw->context = context;
}
void ss_set_buffer(struct ss_switch *sw, ss_buffer_fn buffer) {
    (void)sw;
    (void)buffer;
}

void ss_set_handover(struct ss_switch *sw, ss_handover_fn handover, void *context) {
    sw->handover = handover;
    sw->handover_context = context;
}
uint64_t ss_port_rate(struct ss_switch *sw, uint32_t port) {
    (void)sw;
    return port % 2; /* rings of both kinds */
}
int ss_port_set_up(struct ss_switch *sw, uint32_t port, int up) {
    (void)sw;
    return port > SS_MAX_PORT || up < 0 ? -1 : 0;
}
void ss_port_set_backlog(struct ss_switch *sw, uint32_t port, uint32_t packets, uint32_t wait_us) {
    (void)sw, (void)port, (void)packets, (void)wait_us;
}
void ss_begin(struct ss_switch *sw) { (void)sw; }
void ss_end(struct ss_switch *sw) { (void)sw; }
int ss_times_frames(const struct ss_switch *sw) { return sw != NULL; }

void ss_receive(struct ss_switch *sw, uint32_t port, const uint8_t *data, uint32_t length, uint64_t now_ns) {
    if (sw->handover && length % 2 != sw->thread) {
        sw->handover(sw->handover_context, length % 2, port, data, length);
        return;
    }
    uint32_t to = port == CPU_PORT ? 1 : length % 16 == 0 ? CPU_PORT : 3 - port;
    if (length % 8 == 0 && sw->queued < QUEUE && length <= sizeof sw->queue[0].data) {
        sw->queue[sw->queued].port = to;
        sw->queue[sw->queued].length = length;
        sw->queue[sw->queued].due_ns = now_ns + 50000;
        memcpy(sw->queue[sw->queued++].data, data, length);
    } else {
        sw->tx(sw->context, to, data, length);
    }
}

uint64_t ss_service(struct ss_switch *sw, uint64_t now_ns) {
    while (sw->queued && sw->queue[0].due_ns <= now_ns) {
        sw->tx(sw->context, sw->queue[0].port, sw->queue[0].data, sw->queue[0].length);
        memmove(&sw->queue[0], &sw->queue[1], --sw->queued * sizeof sw->queue[0]);
    }
    return sw->queued ? sw->queue[0].due_ns : SS_NEVER;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int program[2], sockets[2]; /* of XDP, by port - 1 */

#ifdef SS_DPDK
static void start_dpdk(void) {
    char words[][32] = {"stress", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "--log-level=*:critical", "-m256"};
    char *arguments[sizeof words / sizeof *words], message[1000];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) arguments[i] = words[i];
    if (ss_dpdk_start(sizeof words / sizeof *words, arguments, message, sizeof message)) abort();
}

static void add_device(struct ss_engine *engine, uint32_t port, const char *device) {
    char name[64] = "";
    sscanf(device, "%63[^,]", name);
    ss_engine_add_device(engine, port, name, &ss_dpdk_port, device, 0);
}
#else
static void start_dpdk(void) {}
static void add_device(struct ss_engine *engine, uint32_t port, const char *device) { (void)engine, (void)port, (void)device; }
#endif

/* `interface`: a name, `xdp:` and a name, `dpdk:` and a device, or `fdN` of an inherited Unix datagram socket. */
static void add_port(struct ss_engine *engine, uint32_t port, const char *interface) {
    if (strncmp(interface, "fd", 2) == 0)
        ss_engine_add_socket(engine, port, interface, (int)strtol(interface + 2, NULL, 10));
    else if (strncmp(interface, "dpdk:", 5) == 0)
        add_device(engine, port, interface + 5);
    else if (strncmp(interface, "xdp:", 4) == 0)
        ss_engine_add_xdp(engine, port, interface + 4, program[port - 1], sockets[port - 1]);
    else
        ss_engine_add_port(engine, port, interface);
}

static void disturb(struct ss_engine **engines, uint32_t threads, const char *folder, char **interface, unsigned *seed) {
    struct ss_engine *engine = engines[0];
    uint8_t frame[300] = {0};
    struct ss_engine_port_status status[2];
    struct ss_engine_stats stats;
    uint32_t port = 1 + (uint32_t)rand_r(seed) % 2;
    struct ss_fault_settings faults = {.loss = 0.1,
                                       .duplicate = 0.2,
                                       .reorder = 0.2,
                                       .corrupt = 0.1,
                                       .delay_ns = (uint64_t)rand_r(seed) % 3 * 100000,
                                       .jitter_ns = (uint64_t)rand_r(seed) % 2 * 100000,
                                       .reorder_gap = 3,
                                       .reorder_hold_ns = 1000000,
                                       .seed = (uint64_t)rand_r(seed)};
    static const struct sock_filter steps[] = {BPF_STMT(BPF_RET | BPF_K, 1)};
    switch (rand_r(seed) % 11) {
    case 0:
        for (uint32_t i = 0; i < threads; i++) ss_engine_remove_port(engines[i], port);
        break;
    case 1:
        for (uint32_t i = 0; i < threads; i++) add_port(engines[i], port, interface[port - 1]);
        break;
    case 2:
        ss_engine_set_faults(engines[rand_r(seed) % threads], port, rand_r(seed) % 2, &faults);
        break;
    case 3:
        ss_engine_set_faults(engine, port, rand_r(seed) % 2, &(struct ss_fault_settings){0});
        break;
    case 4:
        ss_engine_packet_out(engine, frame, (uint32_t)rand_r(seed) % sizeof frame);
        break;
    case 5:
        for (uint32_t i = 0; i < threads; i++) ss_engine_ports(engines[i], status, 2);
        break;
    case 6:
        ss_engine_stats_get(engine, &stats);
        break;
    case 7:
        ss_engine_service(engine);
        break;
    case 8:
        ss_engine_set_capture(engines[rand_r(seed) % threads], rand_r(seed) % 2 ? folder : NULL);
        break;
    case 9:
        ss_engine_set_gso(engines[rand_r(seed) % threads], rand_r(seed) % 2, 4 << 20, 6 << 20);
        break;
    case 10:
        ss_engine_set_steering(engine, steps, (uint32_t)rand_r(seed) % 2);
        break;
    }
}

static void *drain_packet_in(void *context) {
    struct ss_engine *engine = context;
    uint8_t frame[2048];
    struct timespec pause = {0, 1000000};
    for (int empty = 0; empty < 500;) {
        if (ss_engine_packet_in(engine, frame, sizeof frame) >= 0) {
            empty = 0;
            continue;
        }
        empty++;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(int count, char **argument) {
    if (count != 6) return 2;
    static struct ss_switch shards[2];
    struct ss_engine *engines[2];
    uint32_t threads = (uint32_t)strtol(argument[2], NULL, 10);
    for (uint32_t i = 0; i < threads; i++) {
        shards[i].thread = i;
        if (!(engines[i] = ss_engine_new(&shards[i], CPU_PORT))) return 1;
    }
    if (ss_engine_join(engines, threads)) return 1;
    for (uint32_t i = 0; i < 2 && strncmp(argument[4 + i], "xdp:", 4) == 0; i++)
        if (ss_xdp_load(threads, &program[i], &sockets[i])) return 1;
    if (strncmp(argument[4], "dpdk:", 5) == 0) start_dpdk();
    for (uint32_t i = 0; i < threads; i++)
        if (ss_engine_start(engines[i])) return 1;
    printf("ready\n");
    fflush(stdout);
    pthread_t reader;
    pthread_create(&reader, NULL, drain_packet_in, engines[0]);
    unsigned seed = 1;
    struct timespec pause = {0, 200000};
    for (double end = seconds() + strtod(argument[1], NULL); seconds() < end;) {
        disturb(engines, threads, argument[3], argument + 4, &seed);
        nanosleep(&pause, NULL);
    }
    for (uint32_t i = 0; i < threads; i++) ss_engine_stop(engines[i]);
    pthread_join(reader, NULL);
    uint64_t received = 0;
    for (uint32_t i = threads; i-- > 0;) {
        struct ss_engine_port_status status[2];
        uint32_t ports = ss_engine_ports(engines[i], status, 2);
        for (uint32_t j = 0; j < ports; j++) received += status[j].counters.rx_packets;
        ss_engine_free(engines[i]);
    }
    printf("done, %lu frames on the ports that were left\n", (unsigned long)received);
    return 0;
}
