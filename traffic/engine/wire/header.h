/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* generated from protocol/wire.yaml by `make wire` */

#ifndef NETFOLD_HEADER_H
#define NETFOLD_HEADER_H

#include <stdint.h>

/* In network byte order; the lanes follow. */
struct header {
    uint8_t version_kind;
    uint8_t flags;
    uint16_t tree;
    uint32_t tag;
    uint16_t slot;
    uint16_t child;
    uint8_t exponent;
    uint8_t reserved;
    uint16_t lanes;
};

enum {
    NF_HEADER_BYTES = 0x10,
    NF_LANES_MAX = 0x200,
    ROUND_BITS = 0x14,
    VERSION_KIND_GRADIENT = 0x10,
    VERSION_KIND_RESULT = 0x11,
    COUNT_MASK = 0x7f,
    ROCE_BIT = 0x80,
    TARGETED = 0x8000,
    TARGET_ALL_BUT = 0x4000,
    TARGET_NONE = 0x3fff,
    FLAG_OVERFLOW = 0x80,
    FLAG_CONGESTION = 0x40,
    FLAG_QUORUM = 0x20,
    FLAG_SEAL = 0x10,
    FLAG_SLOT_REUSED = 0x08,
    FLAG_FLOATS = 0x04,
    FLAG_DATA = 0x02,
};

_Static_assert(sizeof(struct header) == NF_HEADER_BYTES, "no padding");

/* Section 4 of docs/reference/protocol.md; NF_VERDICTS is the size of an array of counters. */
enum nf_verdict {
    NF_ACCUMULATED = 1,
    NF_RESULT_SENT = 2,
    NF_RESULT_RESENT = 3,
    NF_SUM_SENT = 4,
    NF_SUM_RESENT = 5,
    NF_FORWARDED = 6,
    NF_MULTICAST = 7,
    NF_SLOT_READ = 8,
    NF_SLOT_RESET = 9,
    NF_UNADMITTED = 16,
    NF_STALE_EPOCH = 17,
    NF_BAD_SLOT = 18,
    NF_STALE_CHUNK = 19,
    NF_DUPLICATE = 20,
    NF_MALFORMED = 21,
    NF_UNROUTED = 22,
    NF_EXPIRED = 23,
    NF_LATE = 24,
    NF_SLOT_REUSED = 25,
    NF_VERDICTS = 32
};

static inline uint32_t *lanes_of(struct header *h) { return (uint32_t *)(h + 1); }

#endif
