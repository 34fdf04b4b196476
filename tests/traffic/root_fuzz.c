/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Throws random and nearly right packets and epochs at the parameter server, over loopback and directly, as
 * test_engine_sanitized.py builds it: under the address and undefined-behavior sanitizers. Arguments: seed, steps. */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/root.h"

enum { LANES = 9, BYTES = NF_HEADER_BYTES + 4 * LANES, PORT = 61690, CHILDREN_MAX = 130 };

static uint64_t state;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static int64_t below(int64_t n) { return (int64_t)(next() % (uint64_t)n); }

static int plant(struct nf_root *r) {
    uint16_t children[CHILDREN_MAX];
    uint32_t sources[2 * CHILDREN_MAX];
    int64_t starts[CHILDREN_MAX + 1] = {0};
    for (int64_t tree = 0; tree < 3; tree++) {
        int64_t count = 1 + (below(3) ? below(4) : below(CHILDREN_MAX)), found = 0;
        int anywhere = below(2) == 0;
        for (int64_t i = 0; i < count; i++) {
            children[i] = (uint16_t)(below(20) ? i : below(1 << 16));
            for (int64_t k = anywhere ? 2 : below(3); k < 2; k++) sources[found++] = INADDR_LOOPBACK + (uint32_t)k;
            starts[i + 1] = found;
        }
        if (nf_root_add_tree(r, tree, 1 << below(4), children, count, sources, starts)) return -1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    state = 0x9E3779B97F4A7C15u + (uint64_t)atoll(argv[1]);
    int64_t steps = atoll(argv[2]), verdicts[NF_VERDICTS] = {0}, direct = 0, answers = 0;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof here;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), peer = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    int wake = eventfd(0, EFD_NONBLOCK);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) || getsockname(fd, (struct sockaddr *)&here, &size)) return 3;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (bind(peer, (struct sockaddr *)&from, sizeof from) || getsockname(peer, (struct sockaddr *)&from, &size)) return 3;
    struct nf_root *r = nf_root_create(fd, wake, LANES, ntohs(from.sin_port), &from, below(2), verdicts);
    static uint8_t packet[4 * BYTES] __attribute__((aligned(8))), result[BYTES] __attribute__((aligned(8)));
    static uint8_t back[65536];
    int64_t epoch = 1;
    nf_root_start_epoch(r, epoch);
    if (!r || plant(r)) return 4;
    for (int64_t step = 0; step < steps; step++) {
        if (below(3000) == 0) {
            nf_root_start_epoch(r, epoch = epoch % 4095 + 1);
            if (plant(r)) return 4;
        }
        for (int64_t i = 0; i < BYTES; i++) packet[i] = (uint8_t)next();
        struct header *h = (struct header *)packet;
        h->version_kind = VERSION_KIND_GRADIENT;
        h->tree = __builtin_bswap16((uint16_t)below(4));
        h->tag = __builtin_bswap32((uint32_t)(epoch << ROUND_BITS | below(4)));
        h->slot = __builtin_bswap16((uint16_t)below(9));
        h->child = __builtin_bswap16((uint16_t)below(5));
        h->lanes = __builtin_bswap16(LANES);
        int is_targeted = below(3) == 0, is_short = is_targeted && below(2);
        if (is_targeted) {
            h->lanes = __builtin_bswap16((uint16_t)(TARGETED | below(2) * TARGET_ALL_BUT | below(3)));
            h->flags = (uint8_t)((h->flags & ~(FLAG_QUORUM | FLAG_DATA)) | (is_short ? 0 : FLAG_DATA));
        }
        if (below(20) == 0) packet[below(NF_HEADER_BYTES)] = (uint8_t)next();
        int64_t length = below(50) ? (is_short ? NF_HEADER_BYTES : BYTES) : below(4 * BYTES);
        if (below(4)) {
            enum nf_verdict verdict = nf_root_packet(r, packet, length, below(2) == 0, &from, (struct header *)result);
            direct++;
            answers += verdict == NF_RESULT_SENT || verdict == NF_RESULT_RESENT;
        } else {
            sendto(peer, packet, (size_t)length, 0, (struct sockaddr *)&here, sizeof here);
            if (below(8) == 0 && nf_root_serve(r, 0)) return 5;
            while (recv(peer, back, sizeof back, 0) >= 0) continue;
        }
    }
    uint64_t one = 1;
    if (write(wake, &one, sizeof one) != sizeof one || nf_root_serve(r, 5)) return 5;
    for (int i = 0; i < NF_VERDICTS; i++) direct += verdicts[i];
    printf("%lld packets, %lld answers\n", (long long)direct, (long long)answers);
    nf_root_destroy(r);
    return answers > 0 ? 0 : 1;
}
