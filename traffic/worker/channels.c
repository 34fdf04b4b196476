/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a worker's turn that touch every packet, as one call each: what channels.py says in numpy, for machines
 * on which many workers share a processor. There the cost of a turn is that of code and data that are not in the cache any more:
 * 60 calls of numpy are much of it. */

#include "channels.h"

#include <string.h>

#ifndef NF_SOURCES
#define NF_SOURCES ""
#endif

const char *nf_sources(void) {
    return NF_SOURCES;
}

int64_t accept_result(const struct channels *c, const struct batch *batch, int64_t i, struct matched *out) {
    const struct header *h = header_of(c, batch, i);
    const struct message *message = &batch->messages[i];
    if (message->length != c->stride || h->version_kind != RESULT || __builtin_bswap16(h->lanes) != c->lanes ||
        __builtin_bswap16(h->tree) != c->tree)
        return -1;
    uint32_t tag = __builtin_bswap32(h->tag);
    int64_t chunk = (int64_t)(tag & ((1u << ROUND_BITS) - 1)) * c->slots + __builtin_bswap16(h->slot);
    int64_t channel = chunk & (c->count - 1);
    if (tag >> ROUND_BITS != c->epoch || !c->busy[channel] || c->due[channel] != chunk) return -1;
    c->busy[channel] = 0;
    c->due[channel] += c->count;
    if (!c->resent[channel]) {
        out->fresh++;
        out->sent_sum += c->sent_at[channel];
        if (c->sent_at[channel] > out->sent_max) out->sent_max = c->sent_at[channel];
    }
    int ce = batch->control && message->control_length > CONTROL_TOS &&
             (batch->control[i * CONTROL_BYTES + CONTROL_TOS] & ECN_CE) == ECN_CE;
    out->count++;
    out->marked += ce || (h->flags & CONGESTION);
    out->overflowed += (h->flags & OVERFLOW) != 0;
    return chunk;
}

/* Takes the well-formed results of the tree that channels wait for; of two equal ones the first. */
void nf_match(const struct channels *c, const struct batch *batch, int64_t *chunks, uint32_t *lanes, uint8_t *exponents,
              uint8_t *flags, struct matched *out) {
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; i < batch->count; i++) {
        int64_t k = out->count, chunk = accept_result(c, batch, i, out);
        if (chunk < 0) continue;
        const struct header *h = header_of(c, batch, i);
        chunks[k] = chunk;
        exponents[k] = h->exponent;
        flags[k] = h->flags & (OVERFLOW | CONGESTION);
        swap_lanes(lanes + k * c->lanes, (const uint32_t *)((const uint8_t *)h + HEADER_BYTES), c->lanes);
    }
}

struct supply look(const struct channels *c, int64_t end, int64_t highest) {
    struct supply found = {0, 0, INT64_MAX};
    for (int64_t i = 0; i < c->count; i++) {
        if (c->busy[i] || c->due[i] >= end) continue;
        found.count++;
        found.holes += c->due[i] < highest;
        if (c->due[i] < found.lowest) found.lowest = c->due[i];
    }
    return found;
}

/* `count` numbers in a row meet each channel once. */
void collect(const struct channels *c, int64_t lowest, int64_t end, int64_t n, int64_t *chunks) {
    int64_t got = 0, first = lowest;
    while (got < n) {
        for (int64_t chunk = first; chunk < first + c->count && chunk < end && got < n; chunk++) {
            int64_t channel = chunk & (c->count - 1);
            if (!c->busy[channel] && c->due[channel] == chunk) chunks[got++] = chunk;
        }
        first += c->count;
        int64_t next = INT64_MAX; /* over a gap, which a channel that waits for long leaves, in one step */
        for (int64_t i = 0; got < n && i < c->count; i++)
            if (!c->busy[i] && c->due[i] >= first && c->due[i] < next) next = c->due[i];
        first = next;
    }
}

/* The chunks below `end` that may go, ascending: all below `highest`, others while there is room. `chunks` holds c->count. */
int64_t nf_ready(const struct channels *c, int64_t end, int64_t highest, int64_t room, int64_t *chunks) {
    struct supply found = look(c, end, highest);
    int64_t n = at_most(found.count, at_least(room, found.holes));
    collect(c, found.lowest, end, n, chunks);
    return n;
}

uint32_t *begin_packet(const struct channels *c, int64_t chunk, uint8_t exponent, uint8_t flags) {
    int64_t channel = chunk & (c->count - 1);
    struct header *h = (struct header *)(c->rows + channel * c->stride);
    h->tag = __builtin_bswap32((uint32_t)(c->epoch << ROUND_BITS | chunk / c->slots));
    h->slot = __builtin_bswap16((uint16_t)(chunk & (c->slots - 1)));
    h->exponent = exponent;
    h->flags = flags;
    c->busy[channel] = 1;
    c->resent[channel] = 0;
    return (uint32_t *)((uint8_t *)h + HEADER_BYTES);
}

/* Writes chunks into the rows of their channels, and marks these busy. */
void nf_put(const struct channels *c, const int64_t *chunks, int64_t n, const uint32_t *lanes, const uint8_t *exponents,
            const uint8_t *flags) {
    for (int64_t i = 0; i < n; i++)
        swap_lanes(begin_packet(c, chunks[i], exponents[i], flags[i]), lanes + i * c->lanes, c->lanes);
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
