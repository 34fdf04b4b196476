/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "parts.h"

static void fill(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h) {
    (void)s, (void)chunk;
    clear_lanes(t, h);
}

static int64_t take(const struct tree *t, const struct segment *s, int64_t chunk, struct header *h, double now) {
    (void)t, (void)s, (void)chunk, (void)h, (void)now;
    return NF_PENDING;
}

const struct call_part closing_part = {{CONTROL, 1, fill, take}, one_chunk};
