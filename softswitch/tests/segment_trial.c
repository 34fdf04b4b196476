/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Merges the first frames of a list, as a transmit queue does. */

#include <string.h>

#include "segments.h"

/* `frames` lie one behind the other. Writes the message of the first run to `out`, the number of its frames to `taken`; returns
 * its bytes. */
uint32_t merge_first(const uint8_t *frames, const uint32_t *lengths, uint32_t count, uint8_t *out,
                     struct virtio_net_hdr *header, uint32_t *taken) {
    struct ss_run run = ss_run_of(frames, lengths[0]);
    memcpy(out, frames, lengths[0]);
    frames += lengths[0];
    uint32_t i = 1;
    for (; i < count && ss_run_continues(&run, out, frames, lengths[i]); frames += lengths[i++]) {
        memcpy(out + run.bytes, frames + run.header_bytes, lengths[i] - run.header_bytes);
        ss_run_append(&run, out, frames, lengths[i]);
    }
    *header = ss_run_finish(&run, out);
    *taken = i;
    return run.bytes;
}
