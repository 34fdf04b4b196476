/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a message, its first packet. Lanes are big-endian int32.
 *
 * Switches add up every lane of every packet, the header's too. So a header consists of small numbers that can be told from
 * their sum: digits and their squares (all workers have the same digits exactly if the sums are n times one's own), and for each
 * block of elements a histogram: one field of f = ceil(log2(n + 1)) bits for each exponent byte, in which a worker writes 1 at its
 * own byte. The highest field of the sum that is not zero is the largest byte of all workers.
 *
 * With numerics float32 lanes are floats in memory order: sums of squares stay exact up to 4,096 workers. */
#ifndef NETFOLD_ROCE_MESSAGE_HEADER_H
#define NETFOLD_ROCE_MESSAGE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NR_DIGITS = 8, NR_CHECK_LANES = 2 * NR_DIGITS, NR_BYTES = 256 };

enum nr_check_result { NR_SUMMED, NR_NOT_SUMMED, NR_DIFFERENT };

/* How many blocks a header of `lanes` has capacity for, of `workers`; 0: not even one. */
size_t nr_header_blocks(size_t lanes, size_t workers);
/* Lanes of one block's histogram. */
size_t nr_histogram_lanes(size_t workers);

/* Write the digits of `identity` into a header (its first NR_CHECK_LANES lanes); as floats if lanes are added as such. */
void nr_write_check(uint32_t *header, uint64_t identity, bool floats);
/* NR_SUMMED: all workers sent this identity. NR_NOT_SUMMED: the packet is the predecessor's own. NR_DIFFERENT: a worker sent
 * another identity. */
enum nr_check_result nr_read_check(const uint32_t *header, uint64_t identity, size_t workers, bool floats);

void nr_write_byte(uint32_t *header, size_t block, size_t workers, int byte);
/* The largest byte that a worker wrote; -1: none. */
int nr_read_byte(const uint32_t *header, size_t block, size_t workers);

/* A step of a hash of several values. */
uint64_t nr_hash_mix(uint64_t hash, uint64_t value);

#endif
