/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* sockets.c and udp_batch.c between a core that has packets to send and one that takes them, both made up here, over loopback; as
 * test_engine_sanitized.py builds it, with sendmmsg and recvmmsg wrapped. Arguments, errnos or 0: how the kernel refuses segmented
 * messages; how it refuses all; an ICMP error that is pending at every fourth call, and at how many calls in a row. Prints
 * the messages sent, and the socket's errno at the end. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "io/sockets.h"
#include "wire/header.h"

enum { LANES = 60, STRIDE = NF_HEADER_BYTES + 4 * LANES, PACKETS = 150 };

static uint8_t packets[PACKETS][STRIDE] __attribute__((aligned(8)));
static int64_t to_send, next, came, refused, messages, calls, pending_now, reported;
static int refusal, failure, pending, pending_in_a_row;

static void check(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

int __real_sendmmsg(int fd, struct mmsghdr *vector, unsigned count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *vector, unsigned count, int flags);
int __real_recvmmsg(int fd, struct mmsghdr *vector, unsigned count, int flags, struct timespec *timeout);
int __wrap_recvmmsg(int fd, struct mmsghdr *vector, unsigned count, int flags, struct timespec *timeout);

/* Whether udp_batch.c reads all pending errors. */
static int is_lossless(void) { return pending_in_a_row <= 16; }

static int is_icmp_error_pending(void) {
    if (pending && !pending_now && ++calls % 4 == 0) pending_now = pending_in_a_row;
    if (!pending_now) return 0;
    pending_now--;
    reported++;
    errno = pending;
    return 1;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *vector, unsigned count, int flags, struct timespec *timeout) {
    return is_icmp_error_pending() ? -1 : __real_recvmmsg(fd, vector, count, flags, timeout);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *vector, unsigned count, int flags) {
    if (is_icmp_error_pending()) return -1;
    if (failure) {
        errno = failure;
        return -1;
    }
    if (refusal && vector[0].msg_hdr.msg_control) {
        refused++;
        errno = refusal;
        return -1;
    }
    unsigned some = count > 3 ? 3 : count; /* the socket is never said to take all at once */
    messages += some;
    return __real_sendmmsg(fd, vector, some, flags);
}

int64_t nf_core_generation(const struct nf_core *core) { return core ? 1 : 0; }

int64_t nf_core_send(struct nf_core *core, struct nf_out *out, int64_t room, double now) {
    int64_t n = 0;
    if (core || now < 0) return 0;
    for (; n < room && n < to_send; n++) out[n] = (struct nf_out){packets[PACKETS - to_send + n], 0, STRIDE};
    to_send -= n;
    return n;
}

void nf_core_receive(struct nf_core *core, int64_t endpoint, const uint8_t *packet, int64_t length, int marked, double now) {
    if (length != STRIDE) return; /* as the core does */
    check(!core && endpoint == 0 && !marked && now == 2, "what came");
    check(packet[0] >= next && !memcmp(packet, packets[packet[0]], STRIDE), "the packet's bytes, in their order");
    next = packet[0] + 1;
    came++;
}

static int open_socket(uint16_t port, uint16_t peer) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), size = 1 << 20;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in there = here;
    there.sin_port = htons(peer);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    check(!bind(fd, (struct sockaddr *)&here, sizeof here), "bind");
    check(!connect(fd, (struct sockaddr *)&there, sizeof there), "connect");
    return fd;
}

static void round_trip(struct sockets *from, struct sockets *to) {
    to_send = PACKETS;
    came = next = 0;
    sockets_send(from, NULL, 1);
    check(!sockets_blocked(from) && !sockets_error(from), "sending");
    for (int k = 0; k < 1000 && came < PACKETS; k++) sockets_receive(to, NULL, 2);
    check(!sockets_error(to) && came > 0, "receiving");
    check(came == PACKETS || !is_lossless(), "all packets");
}

static void send_wrong_ones(int fd, struct sockets *to) {
    static const size_t sizes[] = {0, 1, 15, STRIDE - 4, STRIDE + 1, 2 * STRIDE, 60000};
    static uint8_t bytes[60000];
    int odd = 7;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check(send(fd, bytes, sizes[i], 0) >= 0, "send");
    if (!setsockopt(fd, IPPROTO_UDP, 103, &odd, sizeof odd)) send(fd, bytes, 70, 0);
    came = next = 0;
    for (int k = 0; k < 100; k++) sockets_receive(to, NULL, 2);
    check(came == 0 && !sockets_error(to), "other datagrams are dropped");
}

int main(int argc, char **argv) {
    check(argc == 5, "usage: burst_trial REFUSAL FAILURE PENDING IN_A_ROW");
    refusal = atoi(argv[1]);
    pending = atoi(argv[3]);
    pending_in_a_row = atoi(argv[4]);
    for (int i = 0; i < PACKETS; i++) {
        memset(packets[i], i, STRIDE);
        ((struct header *)packets[i])->slot = __builtin_bswap16((uint16_t)i);
    }
    int a = open_socket(29711, 29712), b = open_socket(29712, 29711), off = 0;
    struct sockets *from = sockets_create(), *to = sockets_create();
    check(from && to && !sockets_open(from, (int32_t[]){a}, 1, LANES), "sockets");
    check(!sockets_open(to, (int32_t[]){b}, 1, LANES), "sockets");
    for (int k = 0; k < 3; k++) round_trip(from, to);
    int silent = -1;
    socklen_t size = sizeof silent;
    getsockopt(a, SOL_SOCKET, SO_NO_CHECK, &silent, &size);
    if (is_lossless()) {
        check(refusal ? refused == 1 && silent == 1 : silent == 0, "tried once, and checksums only where they are of use");
        check(sockets_survived_errors(from) + sockets_survived_errors(to) == reported, "each reported error is counted");
    }
    printf("%lld messages\n", (long long)messages);
    setsockopt(a, SOL_SOCKET, SO_NO_CHECK, &off, sizeof off);
    send_wrong_ones(a, to);
    int64_t survived = sockets_survived_errors(from);
    pending = 0;
    failure = atoi(argv[2]);
    to_send = 1;
    if (failure) sockets_send(from, NULL, 1);
    check(!failure || sockets_error(from) || sockets_survived_errors(from) > survived, "a failure is an error, or survived");
    printf("%d\n", sockets_error(from));
    sockets_destroy(from);
    sockets_destroy(to);
    return 0;
}
