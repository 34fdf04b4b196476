/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The memory-mapped receive ring of a packet socket (TPACKET_V2): the kernel fills one frame and wakes the thread at once.
 * TPACKET_V3 hands over whole blocks with a timer in milliseconds, so a lone packet would be delayed.
 *
 * A frame longer than the ring's frames, such as a long super-frame (segments.h), is fetched with a system call
 * (PACKET_COPY_THRESH), which copies it once more. */

#ifndef SS_PACKET_RING_H
#define SS_PACKET_RING_H

#include <stdbool.h>
#include <stdint.h>

enum { SS_RING_LONGEST = 65536 - 128 }; /* bytes of a frame: longer ones would take 128 KB of the ring each */

struct ss_packet_ring {
    uint8_t *memory; /* NULL while closed */
    uint32_t frame_size, frame_count, next;
    uint8_t *copy; /* for a frame that the ring does not hold; allocated when one arrives */
};

/* Receives one frame, as the wire had it: VLAN tag in place, checksum complete. It is valid and writable until the call
 * returns. */
typedef void ss_ring_sink(void *context, uint8_t *data, uint32_t length);

/* Lost frames: those of `oversize` cannot be segmented; for those of `dropped` there was no memory, or the socket's buffer was
 * full. */
struct ss_ring_losses {
    uint32_t oversize, dropped;
};

/* Maps the ring of `fd`, before it is bound, for frames of up to `longest` bytes: 1,024, or as many as fit into `bytes`, a
 * multiple of 4 MB. Sets PACKET_VNET_HDR. Returns 0 or a negative errno. */
int ss_ring_open(struct ss_packet_ring *ring, int fd, uint32_t longest, uint32_t bytes);
void ss_ring_close(struct ss_packet_ring *ring);

/* Passes received frames to `sink` until `budget` is reached, which the frames of a super-frame may exceed; returns their
 * number. Adds to `losses`. */
uint32_t ss_ring_receive(struct ss_packet_ring *ring, int fd, uint32_t budget, ss_ring_sink *sink, void *context,
                         struct ss_ring_losses *losses);

#endif
