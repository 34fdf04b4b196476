/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Frames of one port that wait to be sent together. Frames that follow each other in a run are one message (segments.h). */

#ifndef SS_TRANSMIT_QUEUE_H
#define SS_TRANSMIT_QUEUE_H

#include <linux/virtio_net.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "segments.h"

enum { SS_TX_BATCH = 64, SS_TX_ARENA = 192 * 1024 };

struct ss_transmit_queue {
    uint8_t *arena;
    uint32_t count, frames, used; /* messages, their frames, bytes of the arena in use */
    bool merges;
    struct ss_run run[SS_TX_BATCH];
    struct virtio_net_hdr offload[SS_TX_BATCH];
    struct iovec iov[SS_TX_BATCH][2]; /* the header above, and the frame */
    struct mmsghdr message[SS_TX_BATCH];
};

/* Numbers of sent and refused frames; `charge`: what the kernel has charged the socket for those sent (departures.h). */
struct ss_transmit_result {
    uint64_t packets, bytes, dropped, charge;
    bool is_segmentation_refused;
};

/* Opens a queue of packet sockets, with a virtio_net_hdr before each frame. Returns 0 or -ENOMEM. */
int ss_transmit_init(struct ss_transmit_queue *queue);
void ss_transmit_free(struct ss_transmit_queue *queue);

/* Opens a queue of sockets without these headers; nothing may be merged. */
void ss_transmit_omit_headers(struct ss_transmit_queue *queue);

/* Forgets the frames. */
void ss_transmit_clear(struct ss_transmit_queue *queue);

/* Returns where the next frame may be written before ss_transmit_add takes it; NULL if the queue is full. */
uint8_t *ss_transmit_place(const struct ss_transmit_queue *queue, uint32_t length);

/* Takes the frame, at most SS_SUPER_FRAME bytes; copies it unless it is in its place. Returns false if the queue is full: send it
 * first. */
bool ss_transmit_add(struct ss_transmit_queue *queue, const uint8_t *data, uint32_t length);

/* Sends all and empties the queue. Runs that the kernel or the device refuses are sent frame by frame; other frames that are
 * refused are lost, as on a wire. */
struct ss_transmit_result ss_transmit_send(struct ss_transmit_queue *queue, int fd);

#endif
