/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A span of an array that lies in memory as it is sent: results go from the packet into the array, and elements from the
 * array into the packet, in one pass each. call.py says the same in numpy (Blocks, Integers). */

#include "spans.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((target_clones("avx2", "default")))
#else
#define VECTOR
#endif

enum { EXPONENT_MIN = 31, EXPONENT_BIAS = 126, NOT_FINITE = 255 }; /* quantize.py */

VECTOR static void quantize(uint32_t *restrict to, const float *restrict from, float scale, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32((uint32_t)(int32_t)rintf(from[i] * scale));
}

VECTOR static void dequantize(float *restrict to, const uint32_t *restrict from, double scale, int64_t lanes) {
    for (int64_t i = 0; i < lanes; i++) to[i] = (float)((int32_t)__builtin_bswap32(from[i]) * scale);
}

static int scale_bits(const struct span *s, int64_t row) {
    return (int)(s->sum_bits - (at_least(s->agreed[row], EXPONENT_MIN) - EXPONENT_BIAS));
}

static void take_row(const struct channels *c, const struct span *s, int64_t row, const struct header *h) {
    const uint32_t *lanes = (const uint32_t *)((const uint8_t *)h + HEADER_BYTES);
    uint32_t *to = s->output + row * c->lanes;
    int64_t count = at_most(c->lanes, s->elements - row * c->lanes);
    if (s->sum_bits < 0) {
        swap_lanes(to, lanes, count);
        s->overflowed[row] = (h->flags & OVERFLOW) != 0;
        return;
    }
    s->overflowed[row] = s->agreed[row] == NOT_FINITE;
    if (!s->overflowed[row]) dequantize((float *)to, lanes, ldexp(1, -scale_bits(s, row)) / (double)s->divisor, count);
    if (row + c->count < s->last) s->agreed[row + c->count] = h->exponent;
}

/* Takes the results that channels wait for into the array. */
void nf_take(const struct channels *c, const struct span *s, const struct batch *batch, struct matched *out) {
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; i < batch->count; i++) {
        int64_t chunk = accept_result(c, batch, i, out);
        if (chunk >= 0) take_row(c, s, chunk - s->base + s->first, header_of(c, batch, i));
    }
}

static void put_row(const struct channels *c, const struct span *s, int64_t chunk) {
    int64_t row = chunk - s->base + s->first, next = row + c->count;
    const uint32_t *from = s->input + row * c->lanes;
    if (s->sum_bits < 0)
        swap_lanes(begin_packet(c, chunk, 0, 0), from, c->lanes);
    else {
        uint32_t *to = begin_packet(c, chunk, next < s->last ? s->own[next] : 0, 0);
        if (s->agreed[row] == NOT_FINITE)
            memset(to, 0, (size_t)(4 * c->lanes));
        else
            quantize(to, (const float *)from, ldexpf(1, scale_bits(s, row)), c->lanes);
    }
}

/* Makes the packets of the chunks that may go, at most `allowance`, and points `pieces` and `order` (both for c->count) at
 * their rows and channels. */
void nf_emit(const struct channels *c, const struct span *s, int64_t end, int64_t highest, int64_t room, int64_t allowance,
             double now, struct piece *pieces, int64_t *order, struct emitted *out) {
    struct supply found = look(c, end, highest);
    int64_t wanted = at_most(found.count, at_least(room, found.holes)), n = at_most(wanted, allowance);
    *out = (struct emitted){n, wanted > n, highest};
    collect(c, found.lowest, end, n, order);
    if (n) out->highest = at_least(highest, order[n - 1] + 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t chunk = order[i], channel = chunk & (c->count - 1);
        put_row(c, s, chunk);
        c->sent_at[channel] = now;
        pieces[i].base = (uint64_t)(c->rows + channel * c->stride);
        order[i] = channel;
    }
}
