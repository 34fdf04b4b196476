/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NETFOLD_CHECKSUM_H
#define NETFOLD_CHECKSUM_H

#include <stdint.h>

/* Fills in the TCP or UDP checksum of an Ethernet frame whose sender left it to the hardware (on a veth link with
 * offloads on there is none). Frames of other kinds, fragments and malformed frames are left as they are. */
void complete_checksum(uint8_t *frame, uint32_t length);

#endif
