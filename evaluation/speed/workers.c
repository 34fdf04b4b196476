/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* workers [-r] WINDOW SLOTS TAG_AT SLOT_AT WARM_UP SECONDS INTERFACE... < templates: one worker behind each interface, all adding
 * up one endless gradient, WINDOW chunks at a time.
 *
 * Standard input: for each interface a native 32-bit length and the frame of its worker. Chunk c is sent as that frame with
 * tag + c / SLOTS at TAG_AT (32 bits) and c mod SLOTS at SLOT_AT (16 bits), big-endian. A chunk is done when each
 * interface got a frame of that chunk; then the chunk WINDOW further goes out. With 0 for SLOT_AT the frames are RoCE's: c is in the
 * low 24 bits at TAG_AT, and the ICRC at the end follows it. A chunk that rests for 2 s is sent again.
 * With -r frames cross the link in runs of 16, as netfold's workers send them, which the kernel carries as one frame; else one by one.
 * Prints "begin" after WARM_UP seconds, and then "end CHUNKS SECONDS REPEATED". */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "packet_ring.h"
#include "segments.h"

enum {
    RUN_SENT = 16,
    RUN_RING_BYTES = 4 << 20,
    FRAME_SIZE = 2048,
    RING = 2048,
    BATCH = 64,
    WORKERS_MAX = 16,
    WINDOW_MAX = 4096
};

struct worker {
    int fd;
    uint8_t *ring, *frame;
    uint32_t next, length, first_tag;
    uint32_t icrc, psn_in_icrc[3][256]; /* of the template; what a byte of the PSN changes in it */
    uint32_t queued;
    struct iovec vector[BATCH];
    struct mmsghdr message[BATCH];
    uint8_t copy[BATCH][FRAME_SIZE];
    struct ss_packet_ring runs; /* in place of `ring` */
    struct iovec run_vector[BATCH][2];
    struct virtio_net_hdr run_header[BATCH];
    uint8_t run[BATCH][RUN_SENT * FRAME_SIZE];
};

struct chunk {
    uint64_t number;
    uint32_t seen; /* a bit for each worker that has the result */
    double sent;
};

static struct worker worker[WORKERS_MAX];
static struct chunk window[WINDOW_MAX];
static uint32_t workers, window_size, slots, tag_at, slot_at;
static uint64_t done, repeated;
static int in_runs;

static void check(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void open_ring(struct worker *w) {
    int version = TPACKET_V2;
    struct tpacket_req ring = {65536, RING * FRAME_SIZE / 65536, FRAME_SIZE, RING};
    check(!setsockopt(w->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version), "PACKET_VERSION");
    check(!setsockopt(w->fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring), "PACKET_RX_RING");
    w->ring = mmap(NULL, (size_t)RING * FRAME_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
    check(w->ring != MAP_FAILED, "mmap");
}

static void open_worker(struct worker *w, const char *interface) {
    int one = 1, size = 8 * 1024 * 1024;
    w->fd = socket(AF_PACKET, SOCK_RAW, 0);
    check(w->fd >= 0, "socket");
    check(!setsockopt(w->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one), "PACKET_IGNORE_OUTGOING");
    check(!setsockopt(w->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one), "PACKET_QDISC_BYPASS");
    setsockopt(w->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    if (in_runs) {
        check(!ss_ring_open(&w->runs, w->fd, SS_RING_LONGEST, RUN_RING_BYTES), "ring");
    } else {
        open_ring(w);
    }
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(interface)};
    check(address.sll_ifindex && !bind(w->fd, (struct sockaddr *)&address, sizeof address), interface);
}

static uint32_t crc32(const uint8_t *p, uint32_t n) {
    uint32_t r = ~0u;
    for (; n; n--, p++) {
        r ^= *p;
        for (int k = 0; k < 8; k++) r = (r >> 1) ^ (0xedb88320u & (0u - (r & 1)));
    }
    return ~r;
}

/* A CRC is linear in what changes, so a byte of the PSN changes the same bits of it whatever the others are; what the frame says
 * where the ICRC takes ones does not matter. */
static void prepare_icrc(struct worker *w) {
    uint32_t from = tag_at + 1, covered = w->length - from - 4, none;
    uint8_t *rest = calloc(covered, 1);
    check(rest != NULL, "calloc");
    none = crc32(rest, covered);
    for (uint32_t byte = 0; byte < 3; byte++)
        for (uint32_t value = 0; value < 256; value++) {
            rest[byte] = (uint8_t)value;
            w->psn_in_icrc[byte][value] = crc32(rest, covered) ^ none;
            rest[byte] = 0;
        }
    memcpy(&w->icrc, w->frame + w->length - 4, 4);
    free(rest);
}

static void number_roce(struct worker *w, uint8_t *frame, uint64_t chunk) {
    uint32_t icrc = w->icrc;
    for (int byte = 0; byte < 3; byte++) {
        uint8_t value = (uint8_t)(chunk >> (16 - 8 * byte));
        frame[tag_at + 1 + byte] = value;
        icrc ^= w->psn_in_icrc[byte][value];
    }
    memcpy(frame + w->length - 4, &icrc, 4);
}

static void read_template(struct worker *w) {
    w->frame = malloc(FRAME_SIZE);
    check(w->frame && fread(&w->length, 4, 1, stdin) == 1, "template");
    check(w->length <= FRAME_SIZE && tag_at + 4 <= w->length && slot_at + 2 <= w->length, "template's length");
    check(fread(w->frame, w->length, 1, stdin) == 1, "template");
    memcpy(&w->first_tag, w->frame + tag_at, 4);
    w->first_tag = ntohl(w->first_tag);
    if (!slot_at) prepare_icrc(w);
    for (int i = 0; i < BATCH; i++) {
        memcpy(w->copy[i], w->frame, w->length);
        w->vector[i] = (struct iovec){w->copy[i], w->length};
        w->message[i].msg_hdr = (struct msghdr){.msg_iov = &w->vector[i], .msg_iovlen = 1};
        if (!in_runs) continue;
        w->run_vector[i][0] = (struct iovec){&w->run_header[i], sizeof w->run_header[i]};
        w->run_vector[i][1].iov_base = w->run[i];
        w->message[i].msg_hdr = (struct msghdr){.msg_iov = w->run_vector[i], .msg_iovlen = 2};
    }
}

static int continues(const struct worker *w, const struct ss_run *run, uint32_t at, uint32_t next) {
    return run->frames < RUN_SENT && ss_run_continues(run, w->run[at], w->copy[next], w->length);
}

/* Makes runs of the queued frames; returns their number. */
static uint32_t merge(struct worker *w) {
    uint32_t runs = 0;
    struct ss_run run;
    for (uint32_t i = 0; i < w->queued; i++) {
        if (runs && continues(w, &run, runs - 1, i)) {
            memcpy(w->run[runs - 1] + run.bytes, w->copy[i] + run.header_bytes, w->length - run.header_bytes);
            ss_run_append(&run, w->run[runs - 1], w->copy[i], w->length);
        } else {
            run = ss_run_of(w->copy[i], w->length);
            memcpy(w->run[runs++], w->copy[i], w->length);
        }
        w->run_vector[runs - 1][1].iov_len = run.bytes;
        if (i + 1 == w->queued || !continues(w, &run, runs - 1, i + 1))
            w->run_header[runs - 1] = ss_run_finish(&run, w->run[runs - 1]);
    }
    return runs;
}

static void flush(struct worker *w) {
    uint32_t count = in_runs ? merge(w) : w->queued;
    for (uint32_t sent = 0; sent < count;) {
        int done_now = sendmmsg(w->fd, w->message + sent, count - sent, 0);
        sent += done_now > 0 ? (uint32_t)done_now : 1;
    }
    w->queued = 0;
}

static void send_chunk(struct chunk *chunk, double now) {
    uint16_t slot = htons((uint16_t)(chunk->number % slots));
    chunk->seen = 0;
    chunk->sent = now;
    for (uint32_t i = 0; i < workers; i++) {
        struct worker *w = &worker[i];
        if (w->queued == BATCH) flush(w);
        uint32_t tag = htonl(w->first_tag + (uint32_t)(chunk->number / slots));
        uint8_t *frame = w->copy[w->queued++];
        if (!slot_at) {
            number_roce(w, frame, chunk->number);
            continue;
        }
        memcpy(frame + tag_at, &tag, 4);
        memcpy(frame + slot_at, &slot, 2);
    }
}

static void take(uint32_t index, const uint8_t *data, uint32_t length, double now) {
    uint32_t tag;
    uint16_t slot;
    if (length < tag_at + 4 || length < slot_at + 2u) return;
    memcpy(&tag, data + tag_at, 4);
    memcpy(&slot, data + slot_at, 2);
    uint64_t number = slot_at ? (uint64_t)(ntohl(tag) - worker[0].first_tag) * slots + ntohs(slot) : ntohl(tag) & 0xffffff;
    struct chunk *chunk = &window[number % window_size];
    if (chunk->number != number) return;
    chunk->seen |= 1u << index;
    if (chunk->seen != (1u << workers) - 1) return;
    done++;
    chunk->number += window_size;
    send_chunk(chunk, now);
}

struct taker {
    uint32_t index;
    double now;
};

static void take_of_run(void *context, uint8_t *frame, uint32_t length) {
    const struct taker *t = context;
    take(t->index, frame, length, t->now);
}

static int receive(uint32_t index, double now) {
    struct worker *w = &worker[index];
    int taken = 0;
    if (in_runs) {
        struct ss_ring_losses losses = {0};
        return (int)ss_ring_receive(&w->runs, w->fd, BATCH, take_of_run, &(struct taker){index, now}, &losses);
    }
    for (; taken < BATCH; taken++, w->next++) {
        struct tpacket2_hdr *frame = (void *)(w->ring + (size_t)(w->next % RING) * FRAME_SIZE);
        if (!(__atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
        take(index, (uint8_t *)frame + frame->tp_mac, frame->tp_snaplen, now);
        __atomic_store_n(&frame->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
    return taken;
}

static void run_until(double end) {
    static struct pollfd wait[WORKERS_MAX];
    for (uint32_t i = 0; i < workers; i++) wait[i] = (struct pollfd){.fd = worker[i].fd, .events = POLLIN};
    double checked = seconds();
    for (double now = checked; now < end; now = seconds()) {
        int taken = 0;
        for (uint32_t i = 0; i < workers; i++) taken += receive(i, now);
        if (now > checked + 0.1) {
            checked = now;
            for (uint32_t i = 0; i < window_size; i++)
                if (now > window[i].sent + 2) {
                    repeated++;
                    send_chunk(&window[i], now);
                }
        }
        for (uint32_t i = 0; i < workers; i++)
            if (worker[i].queued) flush(&worker[i]);
        if (!taken) poll(wait, workers, 10);
    }
}

int main(int count, char **argument) {
    in_runs = count > 1 && !strcmp(argument[1], "-r");
    count -= in_runs;
    argument += in_runs;
    if (count < 8 || count - 7 > WORKERS_MAX) {
        fprintf(stderr, "usage: workers [-r] WINDOW SLOTS TAG_AT SLOT_AT WARM_UP SECONDS INTERFACE... < templates\n");
        return 2;
    }
    window_size = (uint32_t)strtoul(argument[1], NULL, 10);
    slots = (uint32_t)strtoul(argument[2], NULL, 10);
    tag_at = (uint32_t)strtoul(argument[3], NULL, 10);
    slot_at = (uint32_t)strtoul(argument[4], NULL, 10);
    double warm_up = strtod(argument[5], NULL), duration = strtod(argument[6], NULL);
    workers = (uint32_t)count - 7;
    if (!window_size || window_size > WINDOW_MAX || !slots || slots % window_size) {
        fprintf(stderr, "workers: WINDOW must be 1..%d and divide SLOTS\n", WINDOW_MAX);
        return 2;
    }
    for (uint32_t i = 0; i < workers; i++) {
        open_worker(&worker[i], argument[7 + i]);
        read_template(&worker[i]);
    }
    double start = seconds();
    for (uint32_t i = 0; i < window_size; i++) {
        window[i].number = i;
        send_chunk(&window[i], start);
    }
    for (uint32_t i = 0; i < workers; i++) flush(&worker[i]);
    run_until(start + warm_up);
    printf("begin\n");
    fflush(stdout);
    done = repeated = 0;
    start = seconds();
    run_until(start + duration);
    printf("end %lu %.6f %lu\n", (unsigned long)done, seconds() - start, (unsigned long)repeated);
    return 0;
}
