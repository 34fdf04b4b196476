/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "packet_ring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../runtime/switch.h"
#include "checksum.h"
#include "segments.h"

enum {
    RING_FRAMES = 1024,
    RECEIVE_BUFFER = 8 * 1024 * 1024, /* of frames that the ring does not hold */
};

static int set_option(int fd, int option, int value) {
    return setsockopt(fd, SOL_PACKET, option, &value, sizeof value) < 0 ? -errno : 0;
}

static int configure(int fd) {
    int error, size = RECEIVE_BUFFER;
    if ((error = set_option(fd, PACKET_VERSION, TPACKET_V2))) return error;
    /* The space before the frame serves to put a VLAN tag back that the kernel took out. */
    if ((error = set_option(fd, PACKET_RESERVE, SS_VLAN_TAG))) return error;
    /* A virtio_net_hdr precedes each frame in both directions; on receive it names an incomplete checksum, and segments. */
    if ((error = set_option(fd, PACKET_VNET_HDR, 1))) return error;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return set_option(fd, PACKET_COPY_THRESH, 1);
}

/* Every frame of the ring has the same size, a power of two that the interface's largest frame fits in. */
int ss_ring_open(struct ss_packet_ring *ring, int fd, uint32_t longest, uint32_t bytes) {
    int error = configure(fd);
    if (error) return error;
    uint32_t need =
        (uint32_t)TPACKET_ALIGN(TPACKET2_HDRLEN) + SS_VLAN_TAG + (uint32_t)sizeof(struct virtio_net_hdr) + 32 + longest;
    uint32_t frame_size = 2048;
    while (frame_size < need) frame_size *= 2;
    uint32_t frames = bytes / frame_size < RING_FRAMES ? bytes / frame_size : RING_FRAMES;
    uint32_t block_size = frame_size < 65536 ? 65536 : frame_size;
    struct tpacket_req request = {
        .tp_block_size = block_size,
        .tp_block_nr = frames / (block_size / frame_size),
        .tp_frame_size = frame_size,
        .tp_frame_nr = frames,
    };
    if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) < 0) return -errno;
    void *memory = mmap(NULL, (size_t)frames * frame_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return -errno;
    *ring = (struct ss_packet_ring){.memory = memory, .frame_size = frame_size, .frame_count = frames};
    return 0;
}

void ss_ring_close(struct ss_packet_ring *ring) {
    if (!ring->memory) return;
    munmap(ring->memory, (size_t)ring->frame_count * ring->frame_size);
    free(ring->copy);
    *ring = (struct ss_packet_ring){0};
}

/* Returns the frame `ahead` places behind the next. */
static struct tpacket2_hdr *frame_at(const struct ss_packet_ring *ring, uint32_t ahead) {
    uint32_t index = ring->next + ahead;
    if (index >= ring->frame_count) index -= ring->frame_count;
    return (struct tpacket2_hdr *)(ring->memory + (size_t)index * ring->frame_size);
}

/* Loads a frame before its turn, and the header that says where the one behind it lies. */
static void prefetch(const struct ss_packet_ring *ring) {
    const struct tpacket2_hdr *frame = frame_at(ring, SS_FRAMES_AHEAD);
    __builtin_prefetch(frame_at(ring, SS_FRAMES_AHEAD + 1));
    if (!(__atomic_load_n(&frame->tp_status, __ATOMIC_RELAXED) & TP_STATUS_USER)) return;
    ss_prefetch_frame((const uint8_t *)frame + frame->tp_mac, frame->tp_snaplen);
}

/* Puts the VLAN tag where it was on the wire: the kernel has it apart from the frame. */
static uint8_t *restore_vlan(const struct tpacket2_hdr *frame, uint32_t status, uint8_t *data, uint32_t *length) {
    uint16_t tag[2] = {
        htons(status & TP_STATUS_VLAN_TPID_VALID ? frame->tp_vlan_tpid : ETH_P_8021Q),
        htons(frame->tp_vlan_tci),
    };
    memmove(data - SS_VLAN_TAG, data, 2 * ETH_ALEN);
    data -= SS_VLAN_TAG;
    memcpy(data + 2 * ETH_ALEN, tag, sizeof tag);
    *length += SS_VLAN_TAG;
    return data;
}

/* Takes the first frame of the queue, which has those that the ring has the first bytes of, in the same order. A call that
 * reports that the interface went down clears this error and takes none. */
static ssize_t take_queued(int fd, struct msghdr *message) {
    ssize_t received;
    do received = recvmsg(fd, message, MSG_DONTWAIT);
    while (received < 0 && errno == ENETDOWN);
    return received;
}

/* Fetches the frame that the ring has the first bytes of. Returns NULL if it is lost. */
static uint8_t *fetch(struct ss_packet_ring *ring, int fd, uint32_t *length) {
    struct virtio_net_hdr offload; /* the ring has the same */
    if (!ring->copy) ring->copy = malloc(SS_VLAN_TAG + SS_SUPER_FRAME);
    struct iovec iov[2] = {{&offload, sizeof offload}, {ring->copy ? ring->copy + SS_VLAN_TAG : NULL, SS_SUPER_FRAME}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = ring->copy ? 2 : 1};
    ssize_t received = take_queued(fd, &message);
    if (!ring->copy || received < (ssize_t)sizeof offload || message.msg_flags & MSG_TRUNC) return NULL;
    *length = (uint32_t)received - (uint32_t)sizeof offload;
    return ring->copy + SS_VLAN_TAG;
}

static uint32_t take(struct ss_packet_ring *ring, int fd, struct tpacket2_hdr *frame, uint32_t status, ss_ring_sink *sink,
                     void *context, struct ss_ring_losses *losses) {
    uint8_t *first_bytes = (uint8_t *)frame + frame->tp_mac, *data = first_bytes;
    uint32_t length = frame->tp_snaplen;
    struct virtio_net_hdr offload; /* precedes the frame; its offsets do not count the VLAN tag */
    memcpy(&offload, data - sizeof offload, sizeof offload);
    if (status & TP_STATUS_COPY) data = fetch(ring, fd, &length);
    if (!data || length < frame->tp_len) {
        losses->dropped += ss_segments_count(first_bytes, frame->tp_snaplen, frame->tp_len, &offload);
        return 0;
    }
    bool is_super = offload.gso_type != VIRTIO_NET_HDR_GSO_NONE;
    if (!is_super && offload.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        ss_complete_checksum(data, length, offload.csum_start, offload.csum_offset);
    if (status & TP_STATUS_VLAN_VALID && length >= 2 * ETH_ALEN) data = restore_vlan(frame, status, data, &length);
    if (is_super) {
        uint32_t count = ss_segments_cut(data, length, &offload, sink, context);
        losses->oversize += count == 0;
        return count;
    }
    sink(context, data, length);
    return 1;
}

uint32_t ss_ring_receive(struct ss_packet_ring *ring, int fd, uint32_t budget, ss_ring_sink *sink, void *context,
                         struct ss_ring_losses *losses) {
    uint32_t taken = 0;
    for (uint32_t visited = 0; taken < budget && visited < budget; visited++) {
        struct tpacket2_hdr *frame = frame_at(ring, 0);
        uint32_t status = __atomic_load_n(&frame->tp_status, __ATOMIC_ACQUIRE);
        if (!(status & TP_STATUS_USER)) break;
        prefetch(ring);
        ring->next = ring->next + 1 == ring->frame_count ? 0 : ring->next + 1;
        taken += take(ring, fd, frame, status, sink, context, losses);
        __atomic_store_n(&frame->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
    return taken;
}
