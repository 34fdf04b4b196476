/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SS_CHECKSUM_H
#define SS_CHECKSUM_H

#include <stdint.h>

/* Completes a checksum that the sender offloaded (veth has no hardware that would), like the kernel's skb_checksum_help: sums
 * the frame from `start` and stores the result at `start + offset`, which holds the pseudo header's sum. Offsets beyond the
 * frame are ignored. */
void ss_complete_checksum(uint8_t *frame, uint32_t length, uint32_t start, uint32_t offset);

#endif
