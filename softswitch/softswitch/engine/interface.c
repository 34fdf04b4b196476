/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "checksum.h"

#define RETRY_FIRST_NS 1000000000ull
#define RETRY_LAST_NS 64000000000ull

enum {
    RING_FRAMES = 1024,
    RING_BYTES_MAX = 8 * 1024 * 1024,
    VLAN_TAG = 4,
    LINK_OVERHEAD = ETH_HLEN + 2 * VLAN_TAG, /* what a frame may hold beyond the MTU: addresses, type, two tags */
    SEND_BUFFER = 8 * 1024 * 1024,
};

static const struct virtio_net_hdr NO_OFFLOAD;

int ss_interface_init(struct ss_interface *interface, uint32_t number, const char *ifname) {
    memset(interface, 0, sizeof *interface);
    interface->fd = interface->xsk.fd = -1;
    interface->number = number;
    memccpy(interface->ifname, ifname, 0, IF_NAMESIZE - 1);
    interface->tx_arena = malloc(SS_TX_ARENA);
    if (!interface->tx_arena) return -ENOMEM;
    for (uint32_t i = 0; i < SS_TX_BATCH; i++) {
        interface->tx_iov[i][0] = (struct iovec){(void *)&NO_OFFLOAD, sizeof NO_OFFLOAD};
        interface->tx_msg[i].msg_hdr.msg_iov = interface->tx_iov[i];
        interface->tx_msg[i].msg_hdr.msg_iovlen = 2;
    }
    return 0;
}

void ss_interface_free(struct ss_interface *interface) {
    ss_interface_close(interface);
    free(interface->tx_arena);
    interface->tx_arena = NULL;
}

static uint32_t interface_mtu(int fd, const char *ifname) {
    struct ifreq request = {0};
    memccpy(request.ifr_name, ifname, 0, IF_NAMESIZE - 1);
    return ioctl(fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0 ? (uint32_t)request.ifr_mtu : 1500;
}

/* Every frame of the ring has the same size, a power of two that the interface's largest frame fits in. */
static int map_ring(struct ss_interface *interface, int fd) {
    int version = TPACKET_V2, reserve = VLAN_TAG;
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0) return -errno;
    /* Room before the frame, to put a VLAN tag back that the kernel took out. */
    if (setsockopt(fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof reserve) < 0) return -errno;
    uint32_t need = (uint32_t)TPACKET_ALIGN(TPACKET2_HDRLEN) + VLAN_TAG + (uint32_t)sizeof(struct virtio_net_hdr);
    need += 32 + interface->mtu + LINK_OVERHEAD;
    uint32_t frame_size = 2048;
    while (frame_size < need) frame_size *= 2;
    uint32_t frames = RING_BYTES_MAX / frame_size < RING_FRAMES ? RING_BYTES_MAX / frame_size : RING_FRAMES;
    uint32_t block_size = frame_size < 65536 ? 65536 : frame_size;
    struct tpacket_req request = {
        .tp_block_size = block_size,
        .tp_block_nr = frames / (block_size / frame_size),
        .tp_frame_size = frame_size,
        .tp_frame_nr = frames,
    };
    if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) < 0) return -errno;
    void *ring = mmap(NULL, (size_t)frames * frame_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) return -errno;
    interface->ring = ring;
    interface->frame_size = frame_size;
    interface->frame_count = frames;
    interface->next_frame = 0;
    return 0;
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

static int configure(struct ss_interface *interface, int fd, int ifindex) {
    struct packet_mreq promiscuous = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    int size = SEND_BUFFER, error;
    if ((error = set_flag(fd, PACKET_IGNORE_OUTGOING, 1))) return error;
    if ((error = set_flag(fd, PACKET_QDISC_BYPASS, 1))) return error;
    /* A virtio_net_hdr precedes each frame in both directions; on receive it names an incomplete checksum. */
    if ((error = set_flag(fd, PACKET_VNET_HDR, 1))) return error;
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0) return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    interface->mtu = interface_mtu(fd, interface->ifname);
    if ((error = map_ring(interface, fd))) return error;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) return -errno;
    return 0;
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
    for (uint32_t i = 0; i < SS_TX_BATCH; i++) { /* no virtio_net_hdr */
        interface->tx_msg[i].msg_hdr.msg_iov = &interface->tx_iov[i][1];
        interface->tx_msg[i].msg_hdr.msg_iovlen = 1;
    }
    return 0;
}

int ss_interface_open(struct ss_interface *interface) {
    int ifindex = (int)if_nametoindex(interface->ifname);
    if (ifindex == 0) return -ENODEV;
    /* Protocol 0: receives nothing before the bind, so no frame of another interface. */
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

static bool misses_xsk(const struct ss_interface *interface) {
    return interface->fd >= 0 && !interface->has_tap && !ss_interface_is_socket(interface) && !ss_xsk_is_open(&interface->xsk);
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
    interface->xsk_bytes = 0;
    ss_xsk_close(&interface->xsk);
}

void ss_interface_close(struct ss_interface *interface) {
    if (interface->fd < 0) return;
    if (interface->ring) {
        ss_interface_read_kernel_drops(interface);
        munmap(interface->ring, (size_t)interface->frame_count * interface->frame_size);
    }
    if (ss_xsk_is_open(&interface->xsk)) close_xsk(interface);
    close(interface->fd);
    interface->counters.tx_dropped += interface->tx_count;
    ss_frame_socket_free(interface->socket);
    interface->socket = NULL;
    interface->ring = NULL;
    interface->fd = -1;
    interface->ifindex = 0;
    interface->tx_count = interface->tx_used = 0;
}

static struct tpacket2_hdr *frame_at(const struct ss_interface *interface, uint32_t index) {
    return (struct tpacket2_hdr *)(interface->ring + (size_t)index * interface->frame_size);
}

static uint32_t frame_status(const struct tpacket2_hdr *frame) { return __atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE); }

bool ss_interface_mtu_grew(const struct ss_interface *interface) {
    return interface_mtu(interface->fd, interface->ifname) > interface->mtu;
}

/* The kernel keeps a VLAN tag beside the frame; programs want it where it was on the wire. */
static uint8_t *restore_vlan(const struct tpacket2_hdr *frame, uint32_t status, uint8_t *data, uint32_t *length) {
    uint16_t tag[2] = {
        htons(status & TP_STATUS_VLAN_TPID_VALID ? frame->tp_vlan_tpid : ETH_P_8021Q),
        htons(frame->tp_vlan_tci),
    };
    memmove(data - VLAN_TAG, data, 2 * ETH_ALEN);
    data -= VLAN_TAG;
    memcpy(data + 2 * ETH_ALEN, tag, sizeof tag);
    *length += VLAN_TAG;
    return data;
}

static void take_frame(struct ss_interface *interface, struct tpacket2_hdr *frame, uint32_t status, ss_interface_sink *sink,
                       void *context) {
    uint8_t *data = (uint8_t *)frame + frame->tp_mac;
    uint32_t length = frame->tp_snaplen;
    if (frame->tp_len > length) {
        interface->counters.rx_oversize++;
        return;
    }
    if (status & TP_STATUS_CSUMNOTREADY) {
        struct virtio_net_hdr offload; /* precedes the frame; its offsets do not count the VLAN tag */
        memcpy(&offload, data - sizeof offload, sizeof offload);
        if (offload.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
            ss_complete_checksum(data, length, offload.csum_start, offload.csum_offset);
    }
    if (status & TP_STATUS_VLAN_VALID && length >= 2 * ETH_ALEN) data = restore_vlan(frame, status, data, &length);
    interface->counters.rx_packets++;
    interface->counters.rx_bytes += length;
    sink(context, interface, data, length);
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

uint32_t ss_interface_receive(struct ss_interface *interface, uint32_t budget, ss_interface_sink *sink, void *context) {
    if (ss_interface_is_socket(interface)) return receive_from_socket(interface, budget, sink, context);
    uint32_t taken = 0;
    while (taken < budget && interface->fd >= 0) {
        struct tpacket2_hdr *frame = frame_at(interface, interface->next_frame);
        uint32_t status = frame_status(frame);
        if (!(status & TP_STATUS_USER)) break;
        uint32_t next = interface->next_frame + 1 == interface->frame_count ? 0 : interface->next_frame + 1;
        __builtin_prefetch((uint8_t *)frame_at(interface, next));
        take_frame(interface, frame, status, sink, context);
        __atomic_store_n(&frame->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        interface->next_frame = next;
        taken++;
    }
    return taken;
}

static void flush_xsk(struct ss_interface *interface) {
    uint32_t queued = ss_xsk_queued(&interface->xsk);
    bool sent = ss_xsk_flush(&interface->xsk);
    interface->counters.tx_packets += queued - ss_xsk_queued(&interface->xsk);
    if (sent)
        interface->counters.tx_bytes += interface->xsk_bytes;
    else
        close_xsk(interface);
    interface->xsk_bytes = 0;
}

static void flush_arena(struct ss_interface *interface) {
    uint32_t sent = 0;
    while (sent < interface->tx_count) {
        int count = sendmmsg(interface->fd, interface->tx_msg + sent, interface->tx_count - sent, MSG_DONTWAIT);
        if (count <= 0) {
            /* The first frame of the rest was refused (interface down or gone, peer's queue full): it is lost, as on
             * a wire; the others may pass. */
            if (count < 0 && errno == EINTR) continue;
            interface->counters.tx_dropped++;
            sent++;
            continue;
        }
        for (uint32_t end = sent + (uint32_t)count; sent < end; sent++) {
            interface->counters.tx_packets++;
            interface->counters.tx_bytes += interface->tx_iov[sent][1].iov_len;
        }
    }
    interface->tx_count = interface->tx_used = 0;
}

void ss_interface_flush(struct ss_interface *interface) {
    if (interface->xsk_bytes) flush_xsk(interface);
    if (interface->tx_count) flush_arena(interface);
}

static void queue_in_arena(struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    if (interface->xsk_bytes) flush_xsk(interface);
    if (interface->tx_count == SS_TX_BATCH || interface->tx_used + length > SS_TX_ARENA) flush_arena(interface);
    struct iovec *slot = &interface->tx_iov[interface->tx_count++][1];
    slot->iov_base = interface->tx_arena + interface->tx_used;
    slot->iov_len = length;
    memcpy(slot->iov_base, data, length);
    interface->tx_used = (interface->tx_used + length + 63) & ~63u;
}

void ss_interface_send(struct ss_interface *interface, const uint8_t *data, uint32_t length) {
    if (interface->fd < 0 || length == 0 || length > SS_TX_ARENA) {
        interface->counters.tx_dropped++;
        return;
    }
    if (!ss_xsk_is_open(&interface->xsk) || length > interface->xsk.chunk_size || !ss_xsk_has_space(&interface->xsk)) {
        queue_in_arena(interface, data, length);
        return;
    }
    if (interface->tx_count) flush_arena(interface);
    ss_xsk_queue(&interface->xsk, data, length);
    interface->xsk_bytes += length;
    if (ss_xsk_queued(&interface->xsk) >= SS_TX_BATCH) flush_xsk(interface);
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
    if (interface->ring && getsockopt(interface->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
        interface->counters.rx_dropped += stats.tp_drops;
}
