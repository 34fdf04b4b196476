/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fanout.h"
#include "offloads.h"

#define RETRY_FIRST_NS 1000000000ull
#define RETRY_LAST_NS 64000000000ull

enum {
    LINK_OVERHEAD = ETH_HLEN + 2 * SS_VLAN_TAG, /* bytes of a frame beyond the MTU, at most: addresses, type, two tags */
    MTU_MAX = 65535, /* an IP packet has no more bytes */
    SEND_BUFFER = 8 * 1024 * 1024,
    RING_BYTES = 8 * 1024 * 1024,
    RING_RUN = 16, /* frames of a run that the receive ring holds: netfold's hosts send no more at once */
};

int ss_interface_init(struct ss_interface *interface, uint32_t number, const char *ifname, uint32_t thread, uint32_t threads) {
    memset(interface, 0, sizeof *interface);
    interface->fd = interface->xsk.fd = -1;
    interface->number = number;
    interface->thread = thread;
    interface->threads = threads;
    memccpy(interface->ifname, ifname, 0, IF_NAMESIZE - 1);
    return ss_transmit_init(&interface->transmit);
}

void ss_interface_free(struct ss_interface *interface) {
    ss_interface_close(interface);
    ss_transmit_free(&interface->transmit);
}

static uint32_t interface_mtu(int fd, const char *ifname) {
    struct ifreq request = {0};
    memccpy(request.ifr_name, ifname, 0, IF_NAMESIZE - 1);
    if (ioctl(fd, SIOCGIFMTU, &request) < 0 || request.ifr_mtu <= 0) return 1500;
    return request.ifr_mtu < MTU_MAX ? (uint32_t)request.ifr_mtu : MTU_MAX;
}

bool ss_interface_is_oper_up(const struct ss_interface *interface) {
    if (ss_interface_is_socket(interface)) return ss_interface_is_open(interface);
    struct ifreq request = {0};
    memccpy(request.ifr_name, interface->ifname, 0, IF_NAMESIZE - 1);
    if (interface->fd < 0 || ioctl(interface->fd, SIOCGIFFLAGS, &request) < 0) return false;
    return (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
}

static int set_flag(int fd, int option, int value) {
    return setsockopt(fd, SOL_PACKET, option, &value, sizeof value) < 0 ? -errno : 0;
}

static int open_ring(struct ss_interface *interface, int fd) {
    uint32_t frame = interface->mtu + LINK_OVERHEAD, run = RING_RUN * frame;
    if (!interface->run_ring_bytes) return ss_ring_open(&interface->ring, fd, frame, RING_BYTES);
    return ss_ring_open(&interface->ring, fd, run < SS_RING_LONGEST ? run : SS_RING_LONGEST, interface->run_ring_bytes);
}

static int configure(struct ss_interface *interface, int fd, int ifindex) {
    struct packet_mreq promiscuous = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    int size = SEND_BUFFER, error;
    if ((error = set_flag(fd, PACKET_IGNORE_OUTGOING, 1))) return error;
    if ((error = set_flag(fd, PACKET_QDISC_BYPASS, 1))) return error;
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0) return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    interface->mtu = interface_mtu(fd, interface->ifname);
    if ((error = open_ring(interface, fd))) return error;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
    if (interface->threads > 1 && (error = ss_fanout_close_gate(fd))) return error;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) return -errno;
    return interface->threads > 1 ? ss_fanout_join(fd, interface->number) : 0;
}

int ss_interface_open_socket(struct ss_interface *interface, int fd) {
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return -errno;
    int error = ss_frame_socket_open(&interface->socket, own);
    interface->fd = own;
    if (error) {
        ss_interface_close(interface);
        return error;
    }
    interface->mtu = SS_FRAME_SOCKET_MTU - LINK_OVERHEAD;
    ss_transmit_omit_headers(&interface->transmit);
    return 0;
}

int ss_interface_open(struct ss_interface *interface) {
    int ifindex = (int)if_nametoindex(interface->ifname);
    if (ifindex == 0) return -ENODEV;
    /* Protocol 0 receives nothing before the bind, so no frame of another interface arrives. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int error = configure(interface, fd, ifindex);
    interface->fd = fd;
    if (error) {
        ss_interface_close(interface);
        return error;
    }
    struct stat status;
    interface->inode = fstat(fd, &status) == 0 ? status.st_ino : 0;
    interface->has_tap = false;
    interface->ifindex = ifindex;
    ss_interface_reopen_xsk(interface);
    return 0;
}

/* A queue of the device takes one AF_XDP socket, which is the first thread's. */
static bool misses_xsk(const struct ss_interface *interface) {
    return interface->fd >= 0 && !interface->has_tap && !interface->thread && !ss_interface_is_socket(interface) &&
           !ss_xsk_is_open(&interface->xsk);
}

void ss_interface_reopen_xsk(struct ss_interface *interface) {
    if (!misses_xsk(interface)) return;
    (void)ss_xsk_open(&interface->xsk, interface->ifindex, interface->mtu + LINK_OVERHEAD);
}

void ss_interface_retry_xsk(struct ss_interface *interface, uint64_t now_ns) {
    if (!misses_xsk(interface) || now_ns < interface->retry_ns) return;
    if (interface->retry_ns) ss_interface_reopen_xsk(interface);
    interface->retry_wait_ns = interface->retry_wait_ns ? interface->retry_wait_ns * 2 : RETRY_FIRST_NS;
    if (interface->retry_wait_ns > RETRY_LAST_NS) interface->retry_wait_ns = RETRY_LAST_NS;
    interface->retry_ns = now_ns + interface->retry_wait_ns;
}

static void close_xsk(struct ss_interface *interface) {
    interface->counters.tx_dropped += ss_xsk_queued(&interface->xsk);
    ss_xsk_close(&interface->xsk);
}

void ss_interface_close(struct ss_interface *interface) {
    if (interface->fd < 0) return;
    ss_interface_read_kernel_drops(interface);
    ss_ring_close(&interface->ring);
    if (ss_xsk_is_open(&interface->xsk)) close_xsk(interface);
    close(interface->fd);
    interface->counters.tx_dropped += interface->transmit.frames;
    ss_frame_socket_free(interface->socket);
    interface->socket = NULL;
    interface->fd = -1;
    interface->ifindex = 0;
    ss_transmit_clear(&interface->transmit);
}

bool ss_interface_mtu_grew(const struct ss_interface *interface) {
    return interface_mtu(interface->fd, interface->ifname) > interface->mtu;
}

static uint32_t receive_from_socket(struct ss_interface *interface, uint32_t budget, ss_interface_sink *sink, void *context) {
    uint32_t count = ss_frame_socket_receive(interface->socket, budget);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length;
        uint8_t *data = ss_frame_socket_frame(interface->socket, i, &length);
        if (!length) {
            interface->counters.rx_oversize++;
            continue;
        }
        interface->counters.rx_packets++;
        interface->counters.rx_bytes += length;
        sink(context, interface, data, length);
    }
    return count;
}

struct delivery {
    struct ss_interface *interface;
    ss_interface_sink *sink;
    void *context;
};

static void deliver(void *context, uint8_t *data, uint32_t length) {
    const struct delivery *to = context;
    to->interface->counters.rx_packets++;
    to->interface->counters.rx_bytes += length;
    to->sink(to->context, to->interface, data, length);
}

uint32_t ss_interface_receive(struct ss_interface *interface, uint32_t budget, ss_interface_sink *sink, void *context) {
    if (ss_interface_is_socket(interface)) return interface->thread ? 0 : receive_from_socket(interface, budget, sink, context);
    if (!ss_interface_is_open(interface)) return 0;
    struct delivery to = {interface, sink, context};
    struct ss_ring_losses losses = {0};
    uint32_t taken = ss_ring_receive(&interface->ring, interface->fd, budget, deliver, &to, &losses);
    interface->counters.rx_oversize += losses.oversize;
    interface->counters.rx_dropped += losses.dropped;
    return taken + losses.oversize + losses.dropped;
}

/* Sends past the interface's queueing discipline, in fewer system calls than messages. Returns false if the queue holds runs,
 * or frames that do not fit there. */
static bool send_with_xsk(struct ss_interface *interface) {
    const struct ss_transmit_queue *queue = &interface->transmit;
    if (!ss_xsk_is_open(&interface->xsk) || queue->frames > queue->count || !ss_xsk_has_space(&interface->xsk, queue->count))
        return false;
    for (uint32_t i = 0; i < queue->count; i++)
        if (queue->run[i].bytes > interface->xsk.chunk_size) return false;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        ss_xsk_queue(&interface->xsk, queue->iov[i][1].iov_base, queue->run[i].bytes);
        bytes += queue->run[i].bytes;
    }
    bool sent = ss_xsk_flush(&interface->xsk);
    interface->counters.tx_packets += queue->count - ss_xsk_queued(&interface->xsk);
    if (sent)
        interface->counters.tx_bytes += bytes;
    else
        close_xsk(interface);
    ss_transmit_clear(&interface->transmit);
    return true;
}

void ss_interface_flush(struct ss_interface *interface) {
    if (!interface->transmit.count || send_with_xsk(interface)) return;
    struct ss_transmit_result result = ss_transmit_send(&interface->transmit, interface->fd);
    interface->counters.tx_packets += result.packets;
    interface->counters.tx_bytes += result.bytes;
    interface->counters.tx_dropped += result.dropped;
    /* Sends frame by frame until the device's offloads are read again. */
    if (result.is_segmentation_refused) interface->transmit.merges = false;
}

/* Applies the kernel's rule, because AF_XDP reports no error: it lets one VLAN tag exceed the MTU. */
static bool exceeds_mtu(const struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    uint32_t longest = interface->mtu + ETH_HLEN;
    if (length <= longest || ss_interface_is_socket(interface)) return false;
    bool is_tagged = data[12] == ETH_P_8021Q >> 8 && data[13] == (ETH_P_8021Q & 0xff);
    return length > longest + (is_tagged ? SS_VLAN_TAG : 0);
}

void ss_interface_send(struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    if (interface->fd < 0 || length == 0) {
        interface->counters.tx_dropped++;
        return;
    }
    if (exceeds_mtu(interface, data, length)) {
        interface->counters.tx_oversize++;
        return;
    }
    if (ss_transmit_add(&interface->transmit, data, length)) return;
    ss_interface_flush(interface);
    interface->counters.tx_dropped += !ss_transmit_add(&interface->transmit, data, length);
}

void ss_interface_update_merging(struct ss_interface *interface, bool wants_runs) {
    if (!ss_interface_is_open(interface) || ss_interface_is_socket(interface)) return;
    interface->transmit.merges =
        wants_runs && !interface->has_tap && ss_offloads_has_segmentation(interface->fd, interface->ifname);
}

void ss_interface_set_tap(struct ss_interface *interface, bool has_tap) {
    if (interface->fd < 0 || has_tap == interface->has_tap || ss_interface_is_socket(interface)) return;
    ss_interface_flush(interface);
    interface->has_tap = has_tap;
    (void)set_flag(interface->fd, PACKET_QDISC_BYPASS, !has_tap);
    if (has_tap && ss_xsk_is_open(&interface->xsk)) close_xsk(interface);
    ss_interface_reopen_xsk(interface);
}

void ss_interface_read_kernel_drops(struct ss_interface *interface) {
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;
    if (interface->ring.memory && getsockopt(interface->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
        interface->counters.rx_dropped += stats.tp_drops;
}
