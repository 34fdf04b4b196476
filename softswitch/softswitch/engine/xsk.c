/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "xsk.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MASK = SS_XSK_CHUNKS - 1,
    CHUNK_SMALL = 2048,
    CHUNK_LARGE = 4096, /* a chunk may not exceed a page */
    TRIES = 64,         /* calls without progress before the interface is treated as stuck */
};

static int make_rings(struct ss_xsk *xsk) {
    int entries = SS_XSK_CHUNKS;
    struct xdp_umem_reg umem = {
        .addr = (uintptr_t)xsk->memory, .len = (uint64_t)SS_XSK_CHUNKS * xsk->chunk_size, .chunk_size = xsk->chunk_size};
    if (setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) < 0) return -errno;
    /* The kernel requires both rings of the memory, though nothing is received. */
    if (setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_FILL_RING, &entries, sizeof entries) < 0) return -errno;
    if (setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &entries, sizeof entries) < 0) return -errno;
    if (setsockopt(xsk->fd, SOL_XDP, XDP_TX_RING, &entries, sizeof entries) < 0) return -errno;
    return 0;
}

static int map_rings(struct ss_xsk *xsk) {
    struct xdp_mmap_offsets at;
    socklen_t size = sizeof at;
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    if (getsockopt(xsk->fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size) < 0) return -errno;
    xsk->send_map_size = at.tx.desc + SS_XSK_CHUNKS * sizeof(struct xdp_desc);
    xsk->done_map_size = at.cr.desc + SS_XSK_CHUNKS * sizeof(uint64_t);
    xsk->send_map = mmap(NULL, xsk->send_map_size, protection, flags, xsk->fd, XDP_PGOFF_TX_RING);
    if (xsk->send_map == MAP_FAILED) return -errno;
    xsk->done_map = mmap(NULL, xsk->done_map_size, protection, flags, xsk->fd, (off_t)XDP_UMEM_PGOFF_COMPLETION_RING);
    if (xsk->done_map == MAP_FAILED) return -errno;
    uint8_t *send = xsk->send_map, *done = xsk->done_map;
    xsk->send_producer = (uint32_t *)(send + at.tx.producer);
    xsk->send_consumer = (uint32_t *)(send + at.tx.consumer);
    xsk->send = (struct xdp_desc *)(send + at.tx.desc);
    xsk->done_producer = (uint32_t *)(done + at.cr.producer);
    xsk->done_consumer = (uint32_t *)(done + at.cr.consumer);
    xsk->done = (uint64_t *)(done + at.cr.desc);
    return 0;
}

static int set_up(struct ss_xsk *xsk, int ifindex) {
    int error, protection = PROT_READ | PROT_WRITE;
    size_t size = (size_t)SS_XSK_CHUNKS * xsk->chunk_size;
    xsk->memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (xsk->memory == MAP_FAILED) return -errno;
    if ((error = make_rings(xsk)) || (error = map_rings(xsk))) return error;
    struct sockaddr_xdp address = {.sxdp_family = AF_XDP, .sxdp_ifindex = (uint32_t)ifindex, .sxdp_flags = XDP_COPY};
    return bind(xsk->fd, (struct sockaddr *)&address, sizeof address) < 0 ? -errno : 0;
}

int ss_xsk_open(struct ss_xsk *xsk, int ifindex, uint32_t longest) {
    memset(xsk, 0, sizeof *xsk);
    xsk->memory = xsk->send_map = xsk->done_map = MAP_FAILED;
    xsk->chunk_size = longest <= CHUNK_SMALL ? CHUNK_SMALL : CHUNK_LARGE;
    xsk->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (xsk->fd < 0) return -errno;
    int error = set_up(xsk, ifindex);
    if (error) ss_xsk_close(xsk);
    for (uint32_t i = 0; i < SS_XSK_CHUNKS; i++) xsk->free[xsk->free_count++] = i;
    return error;
}

void ss_xsk_close(struct ss_xsk *xsk) {
    if (xsk->fd < 0) return;
    if (xsk->send_map != MAP_FAILED) munmap(xsk->send_map, xsk->send_map_size);
    if (xsk->done_map != MAP_FAILED) munmap(xsk->done_map, xsk->done_map_size);
    close(xsk->fd);
    if (xsk->memory != MAP_FAILED) munmap(xsk->memory, (size_t)SS_XSK_CHUNKS * xsk->chunk_size);
    xsk->fd = -1;
}

static void reclaim_chunks(struct ss_xsk *xsk) {
    uint32_t end = __atomic_load_n(xsk->done_producer, __ATOMIC_ACQUIRE), at = *xsk->done_consumer;
    for (; at != end; at++) xsk->free[xsk->free_count++] = (uint32_t)(xsk->done[at & MASK] / xsk->chunk_size);
    __atomic_store_n(xsk->done_consumer, at, __ATOMIC_RELEASE);
}

uint32_t ss_xsk_outstanding(struct ss_xsk *xsk) {
    reclaim_chunks(xsk);
    return SS_XSK_CHUNKS - xsk->free_count;
}

bool ss_xsk_has_space(struct ss_xsk *xsk, uint32_t frames) {
    if (xsk->free_count < frames) reclaim_chunks(xsk);
    return xsk->free_count >= frames;
}

void ss_xsk_queue(struct ss_xsk *xsk, const uint8_t *data, uint32_t length) {
    uint64_t address = (uint64_t)xsk->free[--xsk->free_count] * xsk->chunk_size;
    memcpy(xsk->memory + address, data, length);
    xsk->send[xsk->produced++ & MASK] = (struct xdp_desc){.addr = address, .len = length};
}

uint32_t ss_xsk_queued(const struct ss_xsk *xsk) {
    return xsk->produced - __atomic_load_n(xsk->send_consumer, __ATOMIC_ACQUIRE);
}

bool ss_xsk_flush(struct ss_xsk *xsk) {
    __atomic_store_n(xsk->send_producer, xsk->produced, __ATOMIC_RELEASE);
    uint32_t before = ss_xsk_queued(xsk), tries = 0;
    /* One call takes about 32 frames. */
    for (uint32_t left = before; left && tries < TRIES; before = left) {
        int error = sendto(xsk->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? errno : 0;
        if (error && error != EAGAIN && error != EBUSY && error != ENOBUFS && error != EINTR) return false;
        reclaim_chunks(xsk);
        left = ss_xsk_queued(xsk);
        tries = left == before ? tries + 1 : 0;
    }
    return tries < TRIES;
}
