/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to lanes and back, and what a message's first packet holds. Lanes are big-endian int32.
 *
 * Every lane of every packet is added up, the header's too. So a header holds small numbers that are told apart from
 * their sum: digits and their squares (all workers have the same digits exactly if the sums are n times one's own), and
 * for each block of elements a histogram: one field of f = ceil(log2(n + 1)) bits for each exponent byte, in which a
 * worker has 1 at its own byte. The highest field of the sum that is not zero is the largest byte of all workers.
 *
 * Where the job's numerics are float32, lanes are that, as they lie in memory: sums of squares stay exact up to 4,096 workers. */
#ifndef NETFOLD_ROCE_NUMBERS_H
#define NETFOLD_ROCE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NR_DIGITS = 8, NR_CHECK_LANES = 2 * NR_DIGITS, NR_BYTES = 256, NR_NOT_FINITE = 255 };

enum nr_sum { NR_SUMMED, NR_RAW, NR_DIFFERENT };

/* How many blocks a header of `lanes` has room for, of `workers`; 0: not even one. */
size_t nr_blocks(size_t lanes, size_t workers);
/* Lanes of one block's histogram. */
size_t nr_histogram_lanes(size_t workers);

/* Write the digits of `identity` into a header (its first NR_CHECK_LANES lanes); as floats if lanes are added as such. */
void nr_write_check(uint32_t *header, uint64_t identity, bool floats);
/* What a summed header says: all workers sent this identity; nobody added anything (the packet is the predecessor's
 * own); or somebody sent another one. */
enum nr_sum nr_read_check(const uint32_t *header, uint64_t identity, size_t workers, bool floats);

void nr_write_byte(uint32_t *header, size_t block, size_t workers, int byte);
/* The largest byte that any worker wrote; -1 where nobody wrote one. */
int nr_read_byte(const uint32_t *header, size_t block, size_t workers);

/* The biased exponent of the largest magnitude; NR_NOT_FINITE with a NaN or an infinity. */
int nr_exponent_byte(const float *values, size_t count);

/* block: docs/protocol.md, section 6. The power of two that lanes are scaled by. */
int nr_scale(int byte, size_t workers);
void nr_lanes_of_floats(uint32_t *lanes, const float *values, size_t count, int scale);
/* Sums as floats, times 2^-scale and divided by `divisor` (a mean's, else 1). */
void nr_floats_of_lanes(float *values, const uint32_t *lanes, size_t count, int scale, double divisor);

void nr_lanes_of_integers(uint32_t *lanes, const int32_t *values, size_t count);
/* False if a sum is at a rail: it may be cut. */
bool nr_integers_of_lanes(int32_t *values, const uint32_t *lanes, size_t count);

/* In place: float32 over `divisor`. */
void nr_divide(float *values, size_t count, double divisor);

uint64_t nr_mixed(uint64_t hash, uint64_t value);

#endif
