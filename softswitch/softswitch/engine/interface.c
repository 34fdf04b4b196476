/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "interface.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "segments.h"

enum { MTU_MAX = 65535 }; /* an IP packet has no more bytes */

void ss_interface_init(struct ss_interface *interface, const struct ss_port_kind *kind, uint32_t number, const char *ifname,
                       uint32_t thread, uint32_t threads) {
    memset(interface, 0, sizeof *interface);
    interface->kind = kind;
    interface->number = number;
    interface->thread = thread;
    interface->threads = threads;
    interface->given_fd = interface->sockets_fd = interface->wait_fd = interface->device_fd = -1;
    memccpy(interface->ifname, ifname, 0, IF_NAMESIZE - 1);
    memccpy(interface->netdev, ifname, 0, IF_NAMESIZE - 1);
}

/* The kernel reports each change of this, so that a port that failed later would be tried again at once, without end. */
static int make_promiscuous(const struct ss_interface *interface) {
    struct packet_mreq all = {.mr_ifindex = interface->ifindex, .mr_type = PACKET_MR_PROMISC};
    if (interface->device_fd < 0) return 0;
    return setsockopt(interface->device_fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) < 0 ? -errno : 0;
}

int ss_interface_open(struct ss_interface *interface) {
    interface->has_tap = interface->merges = interface->is_zero_copy = false;
    int error = interface->kind->open(interface);
    if (!error && (error = make_promiscuous(interface))) ss_interface_close(interface);
    return error;
}

void ss_interface_close(struct ss_interface *interface) {
    if (!ss_interface_is_open(interface)) return;
    ss_interface_read_drops(interface);
    interface->kind->close(interface);
    interface->own = NULL;
    interface->wait_fd = interface->device_fd = -1;
    interface->ifindex = 0;
    interface->merges = false;
}

static uint32_t device_mtu(int fd, const char *ifname) {
    struct ifreq request = {0};
    memccpy(request.ifr_name, ifname, 0, IF_NAMESIZE - 1);
    if (ioctl(fd, SIOCGIFMTU, &request) < 0 || request.ifr_mtu <= 0) return 1500;
    return request.ifr_mtu < MTU_MAX ? (uint32_t)request.ifr_mtu : MTU_MAX;
}

void ss_interface_set_mtu(struct ss_interface *interface, uint32_t mtu) {
    interface->mtu = mtu;
    interface->longest = mtu + ETH_HLEN;
}

int ss_interface_open_device(struct ss_interface *interface) {
    int ifindex = (int)if_nametoindex(interface->netdev);
    if (ifindex == 0) return -ENODEV;
    /* Protocol 0 receives nothing before the bind, so no frame of another interface arrives. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    interface->device_fd = fd;
    interface->ifindex = ifindex;
    ss_interface_set_mtu(interface, device_mtu(fd, interface->netdev));
    return 0;
}

bool ss_interface_is_oper_up(const struct ss_interface *interface) {
    if (!ss_interface_is_open(interface)) return false;
    if (interface->device_fd < 0) return !interface->kind->link || interface->kind->link(interface) > 0;
    struct ifreq request = {0};
    memccpy(request.ifr_name, interface->netdev, 0, IF_NAMESIZE - 1);
    if (ioctl(interface->device_fd, SIOCGIFFLAGS, &request) < 0) return false;
    return (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
}

bool ss_interface_is_stale(struct ss_interface *interface) {
    if (ss_interface_is_open(interface) && interface->kind->link && interface->kind->link(interface) < 0) return true;
    if (interface->device_fd < 0) return false;
    if ((int)if_nametoindex(interface->netdev) != interface->ifindex) return true;
    uint32_t mtu = device_mtu(interface->device_fd, interface->netdev);
    if (mtu > interface->mtu) return true;
    ss_interface_set_mtu(interface, mtu);
    return false;
}

uint32_t ss_interface_receive(struct ss_interface *interface, uint32_t budget, ss_interface_sink *sink, void *context) {
    interface->sink = sink;
    interface->sink_context = context;
    return interface->wait_fd < 0 ? 0 : interface->kind->receive(interface, budget);
}

void ss_interface_deliver(void *interface, uint8_t *data, uint32_t length) {
    struct ss_interface *from = interface;
    from->counters.rx_packets++;
    from->counters.rx_bytes += length;
    from->sink(from->sink_context, from, data, length);
}

uint8_t *ss_interface_place(struct ss_interface *interface, uint32_t length) {
    return ss_interface_is_open(interface) ? interface->kind->place(interface, length) : NULL;
}

/* Applies the kernel's rule, because AF_XDP reports no error: it lets one VLAN tag exceed the MTU. */
static bool exceeds_mtu(const struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    if (length <= interface->longest) return false;
    bool is_tagged = data[12] == ETH_P_8021Q >> 8 && data[13] == (ETH_P_8021Q & 0xff);
    return length > interface->longest + (is_tagged ? SS_VLAN_TAG : 0);
}

void ss_interface_send(struct ss_interface *interface, const uint8_t *data, uint32_t length, uint64_t now_ns) {
    if (!ss_interface_is_open(interface) || length == 0) {
        interface->counters.tx_dropped++;
        return;
    }
    if (exceeds_mtu(interface, data, length)) {
        interface->counters.tx_oversize++;
        return;
    }
    if (interface->kind->add(interface, data, length)) return;
    interface->kind->flush(interface, now_ns);
    interface->counters.tx_dropped += !interface->kind->add(interface, data, length);
}

void ss_interface_flush(struct ss_interface *interface, uint64_t now_ns) {
    if (ss_interface_is_open(interface)) interface->kind->flush(interface, now_ns);
}

struct ss_backlog ss_interface_backlog(struct ss_interface *interface, uint64_t now_ns) {
    if (!ss_interface_is_open(interface) || !interface->kind->backlog) return (struct ss_backlog){0};
    return interface->kind->backlog(interface, now_ns);
}

void ss_interface_update(struct ss_interface *interface, uint64_t now_ns, bool is_event) {
    if (ss_interface_is_open(interface) && interface->kind->update) interface->kind->update(interface, now_ns, is_event);
}

void ss_interface_read_drops(struct ss_interface *interface) {
    if (ss_interface_is_open(interface) && interface->kind->read_drops) interface->kind->read_drops(interface);
}
