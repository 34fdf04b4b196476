/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "port.h"

#include <arpa/inet.h>
#include <errno.h>
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

int port_init(struct port *port, uint32_t number, const char *ifname) {
    memset(port, 0, sizeof *port);
    port->fd = port->xsk.fd = -1;
    port->number = number;
    memccpy(port->ifname, ifname, 0, IF_NAMESIZE - 1);
    port->tx_arena = malloc(PORT_TX_ARENA);
    if (!port->tx_arena) return -ENOMEM;
    for (uint32_t i = 0; i < PORT_TX_BATCH; i++) {
        port->tx_iov[i][0] = (struct iovec){(void *)&NO_OFFLOAD, sizeof NO_OFFLOAD};
        port->tx_msg[i].msg_hdr.msg_iov = port->tx_iov[i];
        port->tx_msg[i].msg_hdr.msg_iovlen = 2;
    }
    return 0;
}

void port_free(struct port *port) {
    port_close(port);
    free(port->tx_arena);
    port->tx_arena = NULL;
}

static uint32_t interface_mtu(int fd, const char *ifname) {
    struct ifreq request = {0};
    memccpy(request.ifr_name, ifname, 0, IF_NAMESIZE - 1);
    return ioctl(fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0 ? (uint32_t)request.ifr_mtu : 1500;
}

/* Every frame of the ring has the same size, a power of two that the interface's largest frame fits in. */
static int map_ring(struct port *port, int fd) {
    int version = TPACKET_V2, reserve = VLAN_TAG;
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0) return -errno;
    /* Room before the frame, to put a VLAN tag back that the kernel took out. */
    if (setsockopt(fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof reserve) < 0) return -errno;
    uint32_t need = (uint32_t)TPACKET_ALIGN(TPACKET2_HDRLEN) + VLAN_TAG + (uint32_t)sizeof(struct virtio_net_hdr);
    need += 32 + port->mtu + LINK_OVERHEAD;
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
    port->ring = ring;
    port->frame_size = frame_size;
    port->frame_count = frames;
    port->next_frame = 0;
    return 0;
}

bool port_is_live(const struct port *port) {
    struct ifreq request = {0};
    memccpy(request.ifr_name, port->ifname, 0, IF_NAMESIZE - 1);
    if (port->fd < 0 || ioctl(port->fd, SIOCGIFFLAGS, &request) < 0) return false;
    return (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
}

static int set_flag(int fd, int option, int value) {
    return setsockopt(fd, SOL_PACKET, option, &value, sizeof value) < 0 ? -errno : 0;
}

static int configure(struct port *port, int fd, int ifindex) {
    struct packet_mreq promiscuous = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    int size = SEND_BUFFER, error;
    if ((error = set_flag(fd, PACKET_IGNORE_OUTGOING, 1))) return error;
    if ((error = set_flag(fd, PACKET_QDISC_BYPASS, 1))) return error;
    /* Which checksum a sender has left to the hardware is in a header before each frame; what is sent has one too. */
    if ((error = set_flag(fd, PACKET_VNET_HDR, 1))) return error;
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0) return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    port->mtu = interface_mtu(fd, port->ifname);
    if ((error = map_ring(port, fd))) return error;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) return -errno;
    return 0;
}

int port_open(struct port *port) {
    int ifindex = (int)if_nametoindex(port->ifname);
    if (ifindex == 0) return -ENODEV;
    /* Protocol 0: nothing is received until the bind, so no frame of another interface slips in. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int error = configure(port, fd, ifindex);
    port->fd = fd;
    if (error) {
        port_close(port);
        return error;
    }
    struct stat status;
    port->inode = fstat(fd, &status) == 0 ? status.st_ino : 0;
    port->watched = false;
    port->ifindex = ifindex;
    port_revive(port);
    return 0;
}

void port_revive(struct port *port) {
    if (port->fd < 0 || port->watched || xsk_is_open(&port->xsk)) return;
    (void)xsk_open(&port->xsk, port->ifindex, port->mtu + LINK_OVERHEAD);
}

void port_retry(struct port *port, uint64_t now_ns) {
    if (port->fd < 0 || port->watched || xsk_is_open(&port->xsk) || now_ns < port->retry_ns) return;
    if (port->retry_ns) port_revive(port);
    port->retry_wait_ns = port->retry_wait_ns ? port->retry_wait_ns * 2 : RETRY_FIRST_NS;
    if (port->retry_wait_ns > RETRY_LAST_NS) port->retry_wait_ns = RETRY_LAST_NS;
    port->retry_ns = now_ns + port->retry_wait_ns;
}

static void close_xsk(struct port *port) {
    port->counters.tx_dropped += xsk_queued(&port->xsk);
    port->xsk_bytes = 0;
    xsk_close(&port->xsk);
}

void port_close(struct port *port) {
    if (port->fd < 0) return;
    if (port->ring) {
        port_read_kernel_drops(port);
        munmap(port->ring, (size_t)port->frame_count * port->frame_size);
    }
    if (xsk_is_open(&port->xsk)) close_xsk(port);
    close(port->fd);
    port->counters.tx_dropped += port->tx_count;
    port->ring = NULL;
    port->fd = -1;
    port->ifindex = 0;
    port->tx_count = port->tx_used = 0;
}

static struct tpacket2_hdr *frame_at(const struct port *port, uint32_t index) {
    return (struct tpacket2_hdr *)(port->ring + (size_t)index * port->frame_size);
}

static uint32_t frame_status(const struct tpacket2_hdr *frame) {
    return __atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE);
}

bool port_mtu_grew(const struct port *port) { return interface_mtu(port->fd, port->ifname) > port->mtu; }

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

static void take_frame(struct port *port, struct tpacket2_hdr *frame, uint32_t status, port_sink *sink, void *context) {
    uint8_t *data = (uint8_t *)frame + frame->tp_mac;
    uint32_t length = frame->tp_snaplen;
    if (frame->tp_len > length) {
        port->counters.rx_oversize++;
        return;
    }
    if (status & TP_STATUS_CSUMNOTREADY) {
        struct virtio_net_hdr offload; /* the kernel's words on the frame, right before it; a tag is not counted in yet */
        memcpy(&offload, data - sizeof offload, sizeof offload);
        if (offload.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
            complete_checksum(data, length, offload.csum_start, offload.csum_offset);
    }
    if (status & TP_STATUS_VLAN_VALID && length >= 2 * ETH_ALEN) data = restore_vlan(frame, status, data, &length);
    port->counters.rx_packets++;
    port->counters.rx_bytes += length;
    sink(context, port, data, length);
}

uint32_t port_receive(struct port *port, uint32_t budget, port_sink *sink, void *context) {
    uint32_t taken = 0;
    while (taken < budget && port->fd >= 0) {
        struct tpacket2_hdr *frame = frame_at(port, port->next_frame);
        uint32_t status = frame_status(frame);
        if (!(status & TP_STATUS_USER)) break;
        uint32_t next = port->next_frame + 1 == port->frame_count ? 0 : port->next_frame + 1;
        __builtin_prefetch((uint8_t *)frame_at(port, next));
        take_frame(port, frame, status, sink, context);
        __atomic_store_n(&frame->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        port->next_frame = next;
        taken++;
    }
    return taken;
}

static void flush_xsk(struct port *port) {
    uint32_t queued = xsk_queued(&port->xsk);
    bool sent = xsk_flush(&port->xsk);
    port->counters.tx_packets += queued - xsk_queued(&port->xsk);
    if (sent) port->counters.tx_bytes += port->xsk_bytes;
    else close_xsk(port);
    port->xsk_bytes = 0;
}

static void flush_arena(struct port *port) {
    uint32_t sent = 0;
    while (sent < port->tx_count) {
        int count = sendmmsg(port->fd, port->tx_msg + sent, port->tx_count - sent, MSG_DONTWAIT);
        if (count <= 0) {
            /* The first frame of the rest was refused (interface down or gone, peer's queue full): it is lost, as on
             * a wire; the others may pass. */
            if (count < 0 && errno == EINTR) continue;
            port->counters.tx_dropped++;
            sent++;
            continue;
        }
        for (uint32_t end = sent + (uint32_t)count; sent < end; sent++) {
            port->counters.tx_packets++;
            port->counters.tx_bytes += port->tx_iov[sent][1].iov_len;
        }
    }
    port->tx_count = port->tx_used = 0;
}

void port_flush(struct port *port) {
    if (port->xsk_bytes) flush_xsk(port);
    if (port->tx_count) flush_arena(port);
}

static void queue_in_arena(struct port *port, const uint8_t *data, uint32_t length) {
    if (port->xsk_bytes) flush_xsk(port);
    if (port->tx_count == PORT_TX_BATCH || port->tx_used + length > PORT_TX_ARENA) flush_arena(port);
    struct iovec *slot = &port->tx_iov[port->tx_count++][1];
    slot->iov_base = port->tx_arena + port->tx_used;
    slot->iov_len = length;
    memcpy(slot->iov_base, data, length);
    port->tx_used = (port->tx_used + length + 63) & ~63u;
}

void port_send(struct port *port, const uint8_t *data, uint32_t length) {
    if (port->fd < 0 || length == 0 || length > PORT_TX_ARENA) {
        port->counters.tx_dropped++;
        return;
    }
    if (!xsk_is_open(&port->xsk) || length > port->xsk.chunk_size || !xsk_has_room(&port->xsk)) {
        queue_in_arena(port, data, length);
        return;
    }
    if (port->tx_count) flush_arena(port);
    xsk_queue(&port->xsk, data, length);
    port->xsk_bytes += length;
    if (xsk_queued(&port->xsk) >= PORT_TX_BATCH) flush_xsk(port);
}

void port_set_watched(struct port *port, bool watched) {
    if (port->fd < 0 || watched == port->watched) return;
    port_flush(port);
    port->watched = watched;
    (void)set_flag(port->fd, PACKET_QDISC_BYPASS, !watched);
    if (watched && xsk_is_open(&port->xsk)) close_xsk(port);
    port_revive(port);
}

void port_read_kernel_drops(struct port *port) {
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;
    if (port->fd >= 0 && getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
        port->counters.rx_dropped += stats.tp_drops;
}
