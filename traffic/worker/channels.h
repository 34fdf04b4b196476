/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What channels.c and spans.c share. Little-endian hosts only. */

#ifndef NETFOLD_CHANNELS_H
#define NETFOLD_CHANNELS_H

#include <stdint.h>

#define ROUND_BITS 20
#define HEADER_BYTES 16

/* The state of a flow's channels; arrays of `count` elements, owned by numpy. See channels.py. */
struct channels {
    int64_t *due;
    uint8_t *busy;
    double *sent_at;
    uint8_t *resent;
    uint8_t *rows;
    int64_t count, slots, epoch, tree, stride, lanes;
};

struct header {
    uint8_t version_kind, flags;
    uint16_t tree;
    uint32_t tag;
    uint16_t slot, child;
    uint8_t exponent, reserved;
    uint16_t lanes;
};

/* What recvmmsg says of a datagram (struct mmsghdr), and its control buffer with one byte of TOS; see transport.py. */
struct message {
    uint64_t unused[5], control_length;
    int32_t flags, pad;
    uint32_t length, pad2;
};

enum { CONTROL_BYTES = 32, CONTROL_TOS = 16, ECN_CE = 3, RESULT = 0x11, OVERFLOW = 0x80, CONGESTION = 0x40 };

/* Packets that came in one batch. `control` may be NULL. */
struct batch {
    const uint8_t *records;
    int64_t count;
    const struct message *messages;
    const uint8_t *control;
};

struct matched {
    int64_t count, marked, fresh, overflowed;
    double sent_sum, sent_max;
};

/* What is ready to go: how many chunks below `end`, how many of them below `highest`, and the lowest. */
struct supply {
    int64_t count, holes, lowest;
};

static inline const struct header *header_of(const struct channels *c, const struct batch *batch, int64_t i) {
    return (const struct header *)(batch->records + i * c->stride);
}

/* The chunk whose result packet `i` is, if a channel waits for it, which then waits no more; else -1. */
int64_t accept_result(const struct channels *c, const struct batch *batch, int64_t i, struct matched *out);

struct supply look(const struct channels *c, int64_t end, int64_t highest);

/* The lowest `n` chunks that are ready, ascending. */
void collect(const struct channels *c, int64_t lowest, int64_t end, int64_t n, int64_t *chunks);

/* Begins the packet of a chunk in the row of its channel, which is busy from now on; gives where the lanes go. */
uint32_t *begin_packet(const struct channels *c, int64_t chunk, uint8_t exponent, uint8_t flags);

static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

static inline void swap_lanes(uint32_t *restrict to, const uint32_t *restrict from, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32(from[i]);
}

/* What this was built of: the fingerprint of recipe.py, or "" where the name of the file tells it. */
const char *nf_sources(void);

#endif
