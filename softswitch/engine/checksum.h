/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NETFOLD_CHECKSUM_H
#define NETFOLD_CHECKSUM_H

#include <stdint.h>

/* Completes a checksum that the sender left to the hardware (on a veth link with offloads on there is none), as the kernel
 * does (skb_checksum_help): of all from `start` on, into the field `offset` further, which holds the pseudo header's sum. Places
 * beyond the frame are ignored. */
void complete_checksum(uint8_t *frame, uint32_t length, uint32_t start, uint32_t offset);

#endif
