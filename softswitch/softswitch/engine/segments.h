/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Frames that the kernel carries as one (generic segmentation offload): a run of UDP or TCP frames of one flow and one length, the
 * last of which may be shorter. Merging keeps all that a frame holds, but the identification of datagrams that may not be
 * fragmented (RFC 6864: it has no meaning, save in RoCEv2's CRC), and a UDP checksum of 0, which becomes the right one. */

#ifndef SS_SEGMENTS_H
#define SS_SEGMENTS_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SS_RUN_FRAMES = 32, /* longer runs save little more */
    SS_VLAN_TAG = 4, /* bytes */
    SS_SUPER_FRAME = 65536 + 64, /* longest frame that the kernel carries: IPv4's length, behind Ethernet and VLAN headers */
};

enum ss_run_kind { SS_RUN_NONE, SS_RUN_UDP, SS_RUN_TCP };

/* A run that grows; its bytes are the headers of the first frame and the payloads of all. */
struct ss_run {
    enum ss_run_kind kind; /* SS_RUN_NONE: a frame that goes alone */
    uint32_t header_bytes, payload_bytes; /* of each frame but the last */
    uint32_t frames, bytes;
    bool is_closed; /* nothing may follow */
};

/* Returns a run of one frame. Only frames whose checksums are right, or 0, may be merged with others: a damaged one stays
 * damaged. */
struct ss_run ss_run_of(const uint8_t *frame, uint32_t length);

/* Returns whether `frame` continues the run whose first frame's headers are at `head`; then append its payload (from
 * header_bytes on), and call ss_run_append. The frame is IPv4 without VLAN tag, options or fragments. */
bool ss_run_continues(const struct ss_run *run, const uint8_t *head, const uint8_t *frame, uint32_t length);
void ss_run_append(struct ss_run *run, uint8_t *head, const uint8_t *frame, uint32_t length);

/* Makes one frame of the run's bytes: sets its lengths and the pseudo header's checksum. Returns the header that tells the kernel
 * how to segment it. */
struct virtio_net_hdr ss_run_finish(const struct ss_run *run, uint8_t *head);

typedef void ss_segment_sink(void *context, uint8_t *frame, uint32_t length);

/* Calls `sink` for each frame of the super-frame `frame`, in order, with complete checksums; returns their number. It cuts in
 * place: a frame is valid, and may be changed, until the sink returns. Returns 0 if it has another form than `offload` says;
 * nothing was called then. */
uint32_t ss_segments_cut(uint8_t *frame, uint32_t length, const struct virtio_net_hdr *offload, ss_segment_sink *sink,
                         void *context);

/* Returns the number of frames of a super-frame of `length` bytes, whose first `captured` bytes are at `frame`. Returns 1 for any
 * other frame, and for one of another form than `offload` says. */
uint32_t ss_segments_count(const uint8_t *frame, uint32_t captured, uint32_t length, const struct virtio_net_hdr *offload);

#endif
