/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "xsk.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../runtime/switch.h"

enum {
    CHUNK_SMALL = 2048,
    TRIES = 64, /* calls without progress before the interface is treated as stuck */
};

static int set(int fd, int option, uint32_t entries) {
    return setsockopt(fd, SOL_XDP, option, &entries, sizeof entries) < 0 ? -errno : 0;
}

static int make_rings(struct ss_xsk *xsk, bool receives) {
    struct xdp_umem_reg umem = {
        .addr = (uintptr_t)xsk->memory, .len = (uint64_t)xsk->chunk_count * xsk->chunk_size, .chunk_size = xsk->chunk_size};
    int error;
    if (setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) < 0) return -errno;
    /* The kernel requires both rings of the memory, also where nothing is received. */
    if ((error = set(xsk->fd, XDP_UMEM_FILL_RING, receives ? SS_XSK_RECEIVES : SS_XSK_SENDS))) return error;
    if ((error = set(xsk->fd, XDP_UMEM_COMPLETION_RING, SS_XSK_SENDS))) return error;
    if ((error = set(xsk->fd, XDP_TX_RING, SS_XSK_SENDS))) return error;
    return receives ? set(xsk->fd, XDP_RX_RING, SS_XSK_RECEIVES) : 0;
}

static int map_ring(const struct ss_xsk *xsk, struct ss_xsk_ring *ring, const struct xdp_ring_offset *at, uint64_t bytes,
                    uint64_t offset) {
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    uint8_t *map = mmap(NULL, at->desc + bytes, protection, flags, xsk->fd, (off_t)offset);
    if (map == MAP_FAILED) return -errno;
    *ring = (struct ss_xsk_ring){
        .map = map,
        .size = at->desc + bytes,
        .producer = (uint32_t *)(map + at->producer),
        .consumer = (uint32_t *)(map + at->consumer),
        .flags = (uint32_t *)(map + at->flags),
        .entries = map + at->desc,
    };
    return 0;
}

static int map_rings(struct ss_xsk *xsk, bool receives) {
    struct xdp_mmap_offsets at;
    socklen_t size = sizeof at;
    uint64_t frames = sizeof(struct xdp_desc), places = sizeof(uint64_t);
    int error;
    if (getsockopt(xsk->fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size) < 0) return -errno;
    if ((error = map_ring(xsk, &xsk->send, &at.tx, SS_XSK_SENDS * frames, XDP_PGOFF_TX_RING))) return error;
    if ((error = map_ring(xsk, &xsk->done, &at.cr, SS_XSK_SENDS * places, XDP_UMEM_PGOFF_COMPLETION_RING))) return error;
    if (!receives) return 0;
    if ((error = map_ring(xsk, &xsk->fill, &at.fr, SS_XSK_RECEIVES * places, XDP_UMEM_PGOFF_FILL_RING))) return error;
    return map_ring(xsk, &xsk->receive, &at.rx, SS_XSK_RECEIVES * frames, XDP_PGOFF_RX_RING);
}

/* The chunks behind those for sending. */
static void fill(struct ss_xsk *xsk) {
    uint64_t *place = xsk->fill.entries;
    for (uint32_t i = 0; i < SS_XSK_RECEIVES; i++) place[i] = (uint64_t)(SS_XSK_SENDS + i) * xsk->chunk_size;
    __atomic_store_n(xsk->fill.producer, SS_XSK_RECEIVES, __ATOMIC_RELEASE);
}

static int set_up(struct ss_xsk *xsk, int ifindex, uint32_t queue, bool receives) {
    int error, protection = PROT_READ | PROT_WRITE;
    uint8_t *memory =
        mmap(NULL, (size_t)xsk->chunk_count * xsk->chunk_size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return -errno;
    xsk->memory = memory;
    if ((error = make_rings(xsk, receives)) || (error = map_rings(xsk, receives))) return error;
    if (receives) fill(xsk);
    /* No frame that has a chunk is refused for want of the socket's memory. */
    int all = 2 * SS_XSK_SENDS * SS_XSK_LONGEST;
    if (receives) (void)setsockopt(xsk->fd, SOL_SOCKET, SO_SNDBUFFORCE, &all, sizeof all);
    struct sockaddr_xdp address = {.sxdp_family = AF_XDP,
                                   .sxdp_ifindex = (uint32_t)ifindex,
                                   .sxdp_queue_id = queue,
                                   .sxdp_flags = receives ? XDP_USE_NEED_WAKEUP : XDP_COPY};
    if (bind(xsk->fd, (struct sockaddr *)&address, sizeof address) < 0) return -errno;
    struct xdp_options options = {0};
    socklen_t size = sizeof options;
    xsk->is_zero_copy = getsockopt(xsk->fd, SOL_XDP, XDP_OPTIONS, &options, &size) == 0 && options.flags & XDP_OPTIONS_ZEROCOPY;
    return 0;
}

static int open_queue(struct ss_xsk *xsk, int ifindex, uint32_t queue, uint32_t longest, bool receives) {
    memset(xsk, 0, sizeof *xsk);
    xsk->chunk_count = SS_XSK_SENDS + (receives ? SS_XSK_RECEIVES : 0);
    xsk->chunk_size = longest + (receives ? SS_XSK_RESERVED : 0) <= CHUNK_SMALL ? CHUNK_SMALL : SS_XSK_LONGEST;
    xsk->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (xsk->fd < 0) return -errno;
    int error = set_up(xsk, ifindex, queue, receives);
    if (error) ss_xsk_close(xsk);
    for (uint32_t i = 0; i < SS_XSK_SENDS; i++) xsk->free[xsk->free_count++] = i;
    return error;
}

int ss_xsk_open(struct ss_xsk *xsk, int ifindex, uint32_t longest) { return open_queue(xsk, ifindex, 0, longest, false); }

int ss_xsk_open_both(struct ss_xsk *xsk, int ifindex, uint32_t queue, uint32_t longest) {
    return open_queue(xsk, ifindex, queue, longest, true);
}

void ss_xsk_close(struct ss_xsk *xsk) {
    if (xsk->fd < 0) return;
    struct ss_xsk_ring *rings[] = {&xsk->send, &xsk->done, &xsk->fill, &xsk->receive};
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++)
        if (rings[i]->map) munmap(rings[i]->map, rings[i]->size);
    close(xsk->fd);
    if (xsk->memory) munmap(xsk->memory, (size_t)xsk->chunk_count * xsk->chunk_size);
    xsk->fd = -1;
}

static void reclaim_chunks(struct ss_xsk *xsk) {
    uint32_t end = __atomic_load_n(xsk->done.producer, __ATOMIC_ACQUIRE), at = *xsk->done.consumer;
    const uint64_t *place = xsk->done.entries;
    for (; at != end; at++) xsk->free[xsk->free_count++] = (uint32_t)(place[at % SS_XSK_SENDS] / xsk->chunk_size);
    __atomic_store_n(xsk->done.consumer, at, __ATOMIC_RELEASE);
}

uint32_t ss_xsk_outstanding(struct ss_xsk *xsk) {
    reclaim_chunks(xsk);
    return SS_XSK_SENDS - xsk->free_count;
}

bool ss_xsk_has_space(struct ss_xsk *xsk, uint32_t frames) {
    if (xsk->free_count < frames) reclaim_chunks(xsk);
    return xsk->free_count >= frames;
}

uint8_t *ss_xsk_place(const struct ss_xsk *xsk) {
    return xsk->memory + (uint64_t)xsk->free[xsk->free_count - 1] * xsk->chunk_size;
}

void ss_xsk_queue(struct ss_xsk *xsk, const uint8_t *data, uint32_t length) {
    uint8_t *place = ss_xsk_place(xsk);
    if (data != place) memcpy(place, data, length);
    xsk->free_count--;
    ((struct xdp_desc *)xsk->send.entries)[xsk->produced++ % SS_XSK_SENDS] =
        (struct xdp_desc){.addr = (uint64_t)(place - xsk->memory), .len = length};
}

uint32_t ss_xsk_queued(const struct ss_xsk *xsk) {
    return xsk->produced - __atomic_load_n(xsk->send.consumer, __ATOMIC_ACQUIRE);
}

/* Returns false for an error that is no lack of space. */
static bool kick(const struct ss_xsk *xsk) {
    if (sendto(xsk->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0) return true;
    return errno == EAGAIN || errno == EBUSY || errno == ENOBUFS || errno == EINTR;
}

bool ss_xsk_flush(struct ss_xsk *xsk) {
    __atomic_store_n(xsk->send.producer, xsk->produced, __ATOMIC_RELEASE);
    /* The driver takes the frames in its own time. */
    if (xsk->is_zero_copy) return !(__atomic_load_n(xsk->send.flags, __ATOMIC_SEQ_CST) & XDP_RING_NEED_WAKEUP) || kick(xsk);
    uint32_t before = ss_xsk_queued(xsk), tries = 0;
    /* One call takes about 32 frames. */
    for (uint32_t left = before; left && tries < TRIES; before = left) {
        if (!kick(xsk)) return false;
        reclaim_chunks(xsk);
        left = ss_xsk_queued(xsk);
        tries = left == before ? tries + 1 : 0;
    }
    return tries < TRIES;
}

/* Gives received frames' chunks back to the kernel. */
static void refill(struct ss_xsk *xsk, uint32_t first, uint32_t end) {
    const struct xdp_desc *entry = xsk->receive.entries;
    uint64_t *place = xsk->fill.entries;
    uint32_t at = *xsk->fill.producer;
    for (; first != end; first++)
        place[at++ % SS_XSK_RECEIVES] = entry[first % SS_XSK_RECEIVES].addr & ~(uint64_t)(xsk->chunk_size - 1);
    __atomic_store_n(xsk->fill.producer, at, __ATOMIC_RELEASE);
    __atomic_store_n(xsk->receive.consumer, end, __ATOMIC_RELEASE);
    if (xsk->is_zero_copy && __atomic_load_n(xsk->fill.flags, __ATOMIC_SEQ_CST) & XDP_RING_NEED_WAKEUP)
        (void)recvfrom(xsk->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

uint32_t ss_xsk_receive(struct ss_xsk *xsk, uint32_t budget, ss_xsk_sink *sink, void *context) {
    const struct xdp_desc *entry = xsk->receive.entries;
    uint32_t first = *xsk->receive.consumer, count = __atomic_load_n(xsk->receive.producer, __ATOMIC_ACQUIRE) - first;
    if (count > budget) count = budget;
    for (uint32_t i = 0; i < count; i++) {
        if (i + SS_FRAMES_AHEAD < count) {
            const struct xdp_desc *ahead = &entry[(first + i + SS_FRAMES_AHEAD) % SS_XSK_RECEIVES];
            ss_prefetch_frame(xsk->memory + ahead->addr, ahead->len);
        }
        const struct xdp_desc *at = &entry[(first + i) % SS_XSK_RECEIVES];
        sink(context, xsk->memory + at->addr, at->len);
    }
    if (count) refill(xsk, first, first + count);
    return count;
}

uint64_t ss_xsk_dropped(const struct ss_xsk *xsk) {
    struct xdp_statistics statistics = {0};
    socklen_t size = sizeof statistics;
    if (getsockopt(xsk->fd, SOL_XDP, XDP_STATISTICS, &statistics, &size) < 0) return 0;
    return statistics.rx_dropped + statistics.rx_ring_full;
}
