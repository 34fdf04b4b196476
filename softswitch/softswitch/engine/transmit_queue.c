/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "transmit_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "departures.h"

int ss_transmit_init(struct ss_transmit_queue *queue) {
    memset(queue, 0, sizeof *queue);
    if (!(queue->arena = malloc(SS_TX_ARENA))) return -ENOMEM;
    for (uint32_t i = 0; i < SS_TX_BATCH; i++) {
        queue->iov[i][0] = (struct iovec){&queue->offload[i], sizeof queue->offload[i]};
        queue->message[i].msg_hdr.msg_iov = queue->iov[i];
        queue->message[i].msg_hdr.msg_iovlen = 2;
    }
    return 0;
}

void ss_transmit_omit_headers(struct ss_transmit_queue *queue) {
    for (uint32_t i = 0; i < SS_TX_BATCH; i++) {
        queue->message[i].msg_hdr.msg_iov = &queue->iov[i][1];
        queue->message[i].msg_hdr.msg_iovlen = 1;
    }
}

void ss_transmit_clear(struct ss_transmit_queue *queue) { queue->count = queue->frames = queue->used = 0; }

void ss_transmit_free(struct ss_transmit_queue *queue) {
    free(queue->arena);
    queue->arena = NULL;
}

static bool append_to_last(struct ss_transmit_queue *queue, const uint8_t *data, uint32_t length) {
    struct ss_run *run = &queue->run[queue->count - 1];
    struct iovec *iov = &queue->iov[queue->count - 1][1];
    uint32_t payload = length - run->header_bytes;
    uint8_t *end = (uint8_t *)iov->iov_base + run->bytes;
    if (end + payload > queue->arena + SS_TX_ARENA) return false;
    ss_run_append(run, iov->iov_base, data, length);
    memmove(end, data + run->header_bytes, payload); /* both may be behind the run */
    iov->iov_len = run->bytes;
    queue->used = (uint32_t)(end - queue->arena) + payload;
    queue->frames++;
    return true;
}

uint8_t *ss_transmit_place(const struct ss_transmit_queue *queue, uint32_t length) {
    uint32_t start = (queue->used + 63) & ~63u;
    bool is_full = queue->count == SS_TX_BATCH || start > SS_TX_ARENA || SS_TX_ARENA - start < length;
    return is_full ? NULL : queue->arena + start;
}

bool ss_transmit_add(struct ss_transmit_queue *queue, const uint8_t *data, uint32_t length) {
    if (queue->merges && queue->count) {
        uint32_t last = queue->count - 1;
        if (ss_run_continues(&queue->run[last], queue->iov[last][1].iov_base, data, length))
            return append_to_last(queue, data, length);
    }
    uint8_t *place = ss_transmit_place(queue, length);
    if (!place) return false;
    queue->iov[queue->count][1] = (struct iovec){place, length};
    if (place != data) memcpy(place, data, length);
    queue->run[queue->count] = queue->merges ? ss_run_of(data, length) : (struct ss_run){.frames = 1, .bytes = length};
    queue->used = (uint32_t)(place - queue->arena) + length;
    queue->count++;
    queue->frames++;
    return true;
}

struct single_sends {
    int fd;
    struct ss_transmit_result *result;
};

static void send_single(void *context, uint8_t *frame, uint32_t length) {
    struct single_sends *sends = context;
    struct virtio_net_hdr none = {0};
    struct iovec iov[2] = {{&none, sizeof none}, {frame, length}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t sent;
    do sent = sendmsg(sends->fd, &message, MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    sends->result->packets += sent >= 0;
    sends->result->bytes += sent >= 0 ? length : 0;
    sends->result->charge += sent >= 0 ? ss_frame_charge(length) : 0;
    sends->result->dropped += sent < 0;
}

/* Message `at` was refused. */
static void on_refusal(struct ss_transmit_queue *queue, uint32_t at, int fd, struct ss_transmit_result *result) {
    if (queue->run[at].frames == 1) {
        result->dropped++;
        return;
    }
    struct single_sends sends = {fd, result};
    struct iovec *frame = &queue->iov[at][1];
    result->is_segmentation_refused = true;
    ss_segments_cut(frame->iov_base, (uint32_t)frame->iov_len, &queue->offload[at], send_single, &sends);
}

struct ss_transmit_result ss_transmit_send(struct ss_transmit_queue *queue, int fd) {
    struct ss_transmit_result result = {0};
    for (uint32_t i = 0; i < queue->count; i++) queue->offload[i] = ss_run_finish(&queue->run[i], queue->iov[i][1].iov_base);
    for (uint32_t sent = 0; sent < queue->count;) {
        int count = sendmmsg(fd, queue->message + sent, queue->count - sent, MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) continue;
        /* The first message of the rest was refused (interface down or gone, peer's queue full, no segmentation); the others
         * may pass. */
        if (count <= 0) on_refusal(queue, sent++, fd, &result);
        for (uint32_t end = sent + (uint32_t)(count > 0 ? count : 0); sent < end; sent++) {
            const struct ss_run *run = &queue->run[sent];
            result.packets += run->frames;
            result.charge += ss_frame_charge(run->bytes);
            result.bytes += run->bytes + (run->frames - 1) * run->header_bytes;
        }
    }
    ss_transmit_clear(queue);
    return result;
}
