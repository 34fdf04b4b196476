/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a worker's turn that touch every packet, as one call each: what channels.py says in numpy, for machines
 * on which many workers share a processor. There the cost of a turn is that of code and data that are not in the cache any more:
 * 60 calls of numpy are much of it. Little-endian hosts only. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

enum { CONTROL_BYTES = 32, CONTROL_TOS = 16, ECN_CE = 3, RESULT = 0x11 };

struct matched {
    int64_t count, marked, fresh;
    double sent_sum, sent_max;
};

static void swap_lanes(uint32_t *to, const uint32_t *from, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32(from[i]);
}

/* Takes the well-formed results of the tree that channels wait for; of two equal ones the first. `control` may be NULL. */
void nf_match(const struct channels *c, const uint8_t *records, int64_t n, const struct message *messages,
              const uint8_t *control, int64_t *chunks, uint32_t *lanes, uint8_t *exponents, uint8_t *flags,
              struct matched *out) {
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        const struct header *h = (const struct header *)(records + i * c->stride);
        if (messages[i].length != c->stride || h->version_kind != RESULT || __builtin_bswap16(h->lanes) != c->lanes ||
            __builtin_bswap16(h->tree) != c->tree)
            continue;
        uint32_t tag = __builtin_bswap32(h->tag);
        int64_t chunk = (int64_t)(tag & ((1u << ROUND_BITS) - 1)) * c->slots + __builtin_bswap16(h->slot);
        int64_t channel = chunk & (c->count - 1);
        if (tag >> ROUND_BITS != c->epoch || !c->busy[channel] || c->due[channel] != chunk) continue;
        int64_t k = out->count++;
        c->busy[channel] = 0;
        c->due[channel] += c->count;
        if (!c->resent[channel]) {
            out->fresh++;
            out->sent_sum += c->sent_at[channel];
            if (c->sent_at[channel] > out->sent_max) out->sent_max = c->sent_at[channel];
        }
        int ce = control && messages[i].control_length > CONTROL_TOS &&
                 (control[i * CONTROL_BYTES + CONTROL_TOS] & ECN_CE) == ECN_CE;
        out->marked += ce || (h->flags & 0x40);
        chunks[k] = chunk;
        exponents[k] = h->exponent;
        flags[k] = h->flags & 0xC0;
        swap_lanes(lanes + k * c->lanes, (const uint32_t *)((const uint8_t *)h + HEADER_BYTES), c->lanes);
    }
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The chunks below `end` that may go, ascending: all below `highest`, others while there is room. `chunks` holds c->count. */
int64_t nf_ready(const struct channels *c, int64_t end, int64_t highest, int64_t room, int64_t *chunks) {
    int64_t n = 0, holes = 0;
    for (int64_t i = 0; i < c->count; i++) {
        if (c->busy[i] || c->due[i] >= end) continue;
        holes += c->due[i] < highest;
        chunks[n++] = c->due[i];
    }
    qsort(chunks, (size_t)n, sizeof *chunks, ascending);
    int64_t limit = room > holes ? room : holes;
    return n < limit ? n : limit;
}

/* Writes chunks into the rows of their channels, and marks these busy. */
void nf_put(const struct channels *c, const int64_t *chunks, int64_t n, const uint32_t *lanes, const uint8_t *exponents,
            const uint8_t *flags) {
    for (int64_t i = 0; i < n; i++) {
        int64_t channel = chunks[i] & (c->count - 1);
        struct header *h = (struct header *)(c->rows + channel * c->stride);
        h->tag = __builtin_bswap32((uint32_t)(c->epoch << ROUND_BITS | chunks[i] / c->slots));
        h->slot = __builtin_bswap16((uint16_t)(chunks[i] & (c->slots - 1)));
        h->exponent = exponents[i];
        h->flags = flags[i];
        swap_lanes((uint32_t *)((uint8_t *)h + HEADER_BYTES), lanes + i * c->lanes, c->lanes);
        c->busy[channel] = 1;
        c->resent[channel] = 0;
    }
}

/* The channels under way that were last sent before `limit`; gives how many, and when the oldest of all was sent. */
int64_t nf_overdue(const struct channels *c, double limit, int64_t *lost, double *oldest) {
    int64_t n = 0;
    *oldest = 1e300;
    for (int64_t i = 0; i < c->count; i++) {
        if (!c->busy[i]) continue;
        if (c->sent_at[i] < *oldest) *oldest = c->sent_at[i];
        if (c->sent_at[i] < limit) lost[n++] = i;
    }
    return n;
}
