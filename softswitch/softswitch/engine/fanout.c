/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "fanout.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORTS_OF_A_PROCESS = 64 }; /* groups of neighboring process ids have different numbers up to this many ports */

static int set_filter(int fd, struct sock_filter *step, uint16_t length) {
    struct sock_fprog program = {length, step};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0 ? -errno : 0;
}

int ss_fanout_close_gate(int fd) {
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    return set_filter(fd, &nothing, 1);
}

int ss_fanout_join(int fd, uint32_t port) {
    uint32_t group = ((uint32_t)getpid() * PORTS_OF_A_PROCESS + port) & 0xffff;
    uint32_t wanted = group | (uint32_t)PACKET_FANOUT_CBPF << 16;
    if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &wanted, sizeof wanted) < 0) return -errno;
    int ignored = 0;
    return setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored) < 0 ? -errno : 0;
}

int ss_fanout_steer(int fd, const struct ss_steering *steering) {
    struct sock_filter first = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {1, &first};
    if (steering->length) program = (struct sock_fprog){(uint16_t)steering->length, (struct sock_filter *)steering->step};
    return setsockopt(fd, SOL_PACKET, PACKET_FANOUT_DATA, &program, sizeof program) < 0 ? -errno : 0;
}
