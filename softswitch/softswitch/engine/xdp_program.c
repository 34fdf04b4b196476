/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "xdp_program.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *request) {
    long result = syscall(SYS_bpf, command, request, sizeof *request);
    return result < 0 ? -errno : (int)result;
}

int ss_xdp_load(uint32_t queues, int *program_fd, int *sockets_fd) {
    union bpf_attr map, load;
    memset(&map, 0, sizeof map);
    map.map_type = BPF_MAP_TYPE_XSKMAP;
    map.key_size = map.value_size = sizeof(uint32_t);
    map.max_entries = queues;
    int sockets = bpf(BPF_MAP_CREATE, &map);
    if (sockets < 0) return sockets;
    /* return bpf_redirect_map(sockets, context->rx_queue_index, XDP_PASS); */
    const struct bpf_insn steps[] = {
        {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = offsetof(struct xdp_md, rx_queue_index)},
        {.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = sockets},
        {0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
        {.code = BPF_JMP | BPF_EXIT},
    };
    memset(&load, 0, sizeof load);
    load.prog_type = BPF_PROG_TYPE_XDP;
    load.insns = (uintptr_t)steps;
    load.insn_cnt = sizeof steps / sizeof *steps;
    load.license = (uintptr_t)"Apache-2.0";
    strcpy(load.prog_name, "softswitch");
    int program = bpf(BPF_PROG_LOAD, &load);
    if (program < 0) {
        close(sockets);
        return program;
    }
    *program_fd = program;
    *sockets_fd = sockets;
    return 0;
}

int ss_xdp_set_socket(int sockets_fd, uint32_t queue, int socket_fd) {
    union bpf_attr update;
    memset(&update, 0, sizeof update);
    update.map_fd = (uint32_t)sockets_fd;
    update.key = (uintptr_t)&queue;
    update.value = (uintptr_t)&socket_fd;
    return bpf(BPF_MAP_UPDATE_ELEM, &update);
}

int ss_xdp_attach(int program_fd, int ifindex) {
    union bpf_attr link;
    memset(&link, 0, sizeof link);
    link.link_create.prog_fd = (uint32_t)program_fd;
    link.link_create.target_ifindex = (uint32_t)ifindex;
    link.link_create.attach_type = BPF_XDP;
    return bpf(BPF_LINK_CREATE, &link);
}
