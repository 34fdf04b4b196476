/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Internet checksums (RFC 1071). Sums are in memory order, which is that of the fields. */

#ifndef SS_CHECKSUM_H
#define SS_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the sum of 16-bit words, without the final complement; folds any sums of such words. */
uint16_t ss_checksum_sum(const uint8_t *data, uint32_t length);
uint16_t ss_checksum_fold(uint64_t sum);

/* Completes a checksum that the sender offloaded (veth has no hardware that would), like the kernel's skb_checksum_help: sums
 * the frame from `start` and stores the result at `start + offset`, which holds the pseudo header's sum. Offsets beyond the
 * frame are ignored. */
void ss_complete_checksum(uint8_t *frame, uint32_t length, uint32_t start, uint32_t offset);

/* Completes the checksum of UDP or TCP over IPv4 or IPv6 where it is the pseudo header's sum, as a sender leaves it that offloads
 * it: the frame came without the kernel's note. A right checksum that happens to be this sum stays the same. */
void ss_complete_partial(uint8_t *frame, uint32_t length);

/* Returns the sum of the pseudo header of TCP or UDP. `addresses`: source and destination, 8 bytes of IPv4 or 32 of IPv6. */
uint16_t ss_checksum_pseudo(const uint8_t *addresses, uint32_t address_bytes, uint32_t protocol, uint32_t length);

/* Returns whether data with its checksum and `pseudo` sum to zero. */
bool ss_checksum_is_right(const uint8_t *data, uint32_t length, uint16_t pseudo);

/* Sets the checksum at data + offset, of data and `pseudo`. It is never 0, which means none in UDP. */
void ss_checksum_set(uint8_t *data, uint32_t length, uint32_t offset, uint16_t pseudo);
void ss_checksum_set_ipv4(uint8_t *header, uint32_t length);

#endif
