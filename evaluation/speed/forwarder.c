/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* forwarder [-x | -X] INTERFACE...: sends every frame that comes in on one interface out of the next one, the last's out of the
 * first, unchanged, until SIGTERM. A plain program, the peer that the embedded switch is measured against: mapped AF_PACKET
 * receive rings, and sendmmsg straight from them; with -x sends of AF_XDP in copy mode, by the code that the switch sends with; with -X AF_XDP in both directions. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "xdp_program.h" /* softswitch/engine */
#include "xsk.h"

enum { FRAME_SIZE = 2048, FRAMES = 1024, BATCH = 64, PORTS_MAX = 64 };

struct port {
    int fd;
    uint8_t *ring;
    uint32_t next;
    struct ss_xsk xsk;
};

static int by_xdp, both_by_xdp;

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

static void check(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static void open_both(struct port *port, const char *interface) {
    int ifindex = (int)if_nametoindex(interface), program, sockets;
    check(!ss_xdp_load(1, &program, &sockets), "XDP");
    check(!ss_xsk_open_both(&port->xsk, ifindex, 0, 1522), "AF_XDP");
    check(!ss_xdp_set_socket(sockets, 0, port->xsk.fd) && ss_xdp_attach(program, ifindex) >= 0, interface);
    port->fd = port->xsk.fd;
}

static void open_port(struct port *port, const char *interface) {
    int one = 1, size = 8 * 1024 * 1024, version = TPACKET_V2, fd = socket(AF_PACKET, SOCK_RAW, 0);
    check(fd >= 0, "socket");
    check(!setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one), "PACKET_IGNORE_OUTGOING");
    check(!setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one), "PACKET_QDISC_BYPASS");
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(interface)};
    struct packet_mreq promiscuous = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
    struct tpacket_req ring = {65536, FRAMES * FRAME_SIZE / 65536, FRAME_SIZE, FRAMES};
    check(!setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous), interface);
    check(!setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version), "PACKET_VERSION");
    check(!setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring), "PACKET_RX_RING");
    port->ring = mmap(NULL, (size_t)FRAMES * FRAME_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(port->ring != MAP_FAILED, "mmap");
    check(!bind(fd, (struct sockaddr *)&address, sizeof address), interface);
    port->fd = fd;
    if (by_xdp) check(!ss_xsk_open(&port->xsk, address.sll_ifindex, 1522), "AF_XDP");
}

static struct tpacket2_hdr *frame_at(struct port *port, uint32_t index) {
    return (struct tpacket2_hdr *)(port->ring + (size_t)(index % FRAMES) * FRAME_SIZE);
}

static int forward_by_xdp(struct port *from, struct port *to) {
    int taken = 0;
    for (; taken < BATCH; taken++, from->next++) {
        struct tpacket2_hdr *frame = frame_at(from, from->next);
        if (!(__atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
        if (ss_xsk_has_space(&to->xsk, 1)) ss_xsk_queue(&to->xsk, (uint8_t *)frame + frame->tp_mac, frame->tp_snaplen);
        __atomic_store_n(&frame->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
    if (taken) ss_xsk_flush(&to->xsk);
    return taken;
}

static void queue(void *context, uint8_t *data, uint32_t length) {
    struct port *to = context;
    if (ss_xsk_has_space(&to->xsk, 1)) ss_xsk_queue(&to->xsk, data, length);
}

static int forward_both_by_xdp(struct port *from, struct port *to) {
    int taken = (int)ss_xsk_receive(&from->xsk, BATCH, queue, to);
    if (taken) ss_xsk_flush(&to->xsk);
    return taken;
}

static int forward(struct port *from, struct port *to) {
    if (both_by_xdp) return forward_both_by_xdp(from, to);
    if (by_xdp) return forward_by_xdp(from, to);
    static struct iovec vector[BATCH];
    static struct mmsghdr message[BATCH];
    int taken = 0;
    for (; taken < BATCH; taken++) {
        struct tpacket2_hdr *frame = frame_at(from, from->next + (uint32_t)taken);
        if (!(__atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
        vector[taken] = (struct iovec){(uint8_t *)frame + frame->tp_mac, frame->tp_snaplen};
        message[taken].msg_hdr = (struct msghdr){.msg_iov = &vector[taken], .msg_iovlen = 1};
    }
    for (int sent = 0; sent < taken;) {
        int done = sendmmsg(to->fd, message + sent, (unsigned)(taken - sent), 0);
        sent += done > 0 ? done : 1;
    }
    for (int i = 0; i < taken; i++, from->next++)
        __atomic_store_n(&frame_at(from, from->next)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    return taken;
}

int main(int count, char **argument) {
    static struct port port[PORTS_MAX];
    static struct pollfd wait[PORTS_MAX];
    by_xdp = count > 1 && strcmp(argument[1], "-x") == 0;
    both_by_xdp = count > 1 && strcmp(argument[1], "-X") == 0;
    argument += by_xdp | both_by_xdp;
    int ports = count - 1 - (by_xdp | both_by_xdp);
    if (ports < 1 || ports > PORTS_MAX) {
        fprintf(stderr, "usage: forwarder [-x | -X] INTERFACE...\n");
        return 2;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < ports; i++) {
        (both_by_xdp ? open_both : open_port)(&port[i], argument[i + 1]);
        wait[i] = (struct pollfd){.fd = port[i].fd, .events = POLLIN};
    }
    printf("ready\n");
    fflush(stdout);
    while (!stopped) {
        int taken = 0;
        for (int i = 0; i < ports; i++) taken += forward(&port[i], &port[(i + 1) % ports]);
        if (taken == 0) poll(wait, (nfds_t)ports, -1);
    }
    return 0;
}
