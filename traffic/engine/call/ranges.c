/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include "ranges.h"

#include <stdlib.h>
#include <string.h>

#include "fingerprint.h"

static const struct nf_tolerance TOLERANCE = {.margin = NF_RANGE_MARGIN, .slack = NF_RANGE_SLACK, .min_exp = 0};

static int is_rotatable(const struct nf_request *r) {
    return r->scheme == NF_ROTATED_QUARTER && (r->dtype == NF_FLOAT32 || r->dtype == NF_FLOAT16 || r->dtype == NF_BFLOAT16);
}

/* A rotation has a power of two elements and has to spread the whole row, so its range is that of all its codes. */
static int has_one_rotation(int64_t lanes) { return (lanes & (lanes - 1)) == 0; }

static int64_t row_width(int64_t lanes) { return NF_ROTATED_MAX / NF_LANES_MAX * lanes; }

/* Starts without knowledge of the sums. Returns -1 if there is no memory. */
static int reset(struct call_ranges *ranges, int64_t count) {
    if (!ranges->mean_square) {
        ranges->mean_square = malloc((size_t)count * sizeof *ranges->mean_square);
        ranges->source = malloc((size_t)(3 * count));
        if (!ranges->mean_square || !ranges->source) return -1;
        ranges->predicted = ranges->source + count;
        ranges->observed = ranges->predicted + count;
        ranges->count = count;
    }
    memset(ranges->mean_square, 0, (size_t)count * sizeof *ranges->mean_square);
    memset(ranges->source, NF_UNKNOWN_RANGE, (size_t)(3 * count));
    return 0;
}

int ranges_choose_scheme(struct nf_call *c, const struct nf_assignment *a, struct nf_scale_predictor *p) {
    struct call_ranges *ranges = &c->ranges;
    ranges->is_predicted = 0;
    if (c->request.remainder) memset(c->request.remainder, 0, (size_t)c->request.elements * sizeof *c->request.remainder);
    if (!is_rotatable(&c->request)) return (int)c->request.scheme;
    if (a->quorum || !has_one_rotation(a->lanes)) return NF_PACKED_HALF;
    ranges->width = row_width(a->lanes);
    int64_t count = (c->request.elements + ranges->width - 1) / ranges->width;
    if (reset(ranges, count)) return -1;
    uint64_t profile = fingerprint_profile(c);
    ranges->occurrence = nf_predictor_next_occurrence(p, profile, count, c->outcome.number);
    const uint8_t *source = nf_predictor_predict(p, profile, ranges->occurrence);
    if (!source || c->request.is_warm_up) return NF_PACKED_HALF;
    ranges->is_predicted = 1;
    memcpy(ranges->source, source, (size_t)count);
    for (int64_t row = 0; row < count; row++) ranges->predicted[row] = nf_predicted_range(source[row]);
    return NF_ROTATED_QUARTER;
}

/* Both halves of a rotated row are noted, in any order, because the sum of two is the same in both. */
void ranges_note_sums(struct nf_call *c, const struct nf_codec *codec, int64_t row) {
    struct call_ranges *ranges = &c->ranges;
    int64_t at = row * codec->width, rest = c->request.elements - at, count = rest < codec->width ? rest : codec->width;
    if (!ranges->count || count <= 0) return;
    const uint8_t *sums = (const uint8_t *)c->request.array + at * codec->itemsize;
    double divisor = (double)codec->divisor, energy = nf_row_energy(codec, sums, count) * (divisor * divisor);
    ranges->mean_square[at / ranges->width] += energy / (double)ranges->width;
}

int ranges_note_rotated(struct nf_call *c, int64_t row, uint8_t observed) {
    if (!nf_fits_range(observed, c->ranges.predicted[row])) return 1;
    c->ranges.observed[row] = observed;
    return 0;
}

void ranges_learn(const struct nf_call *c, struct nf_scale_predictor *p) {
    const struct call_ranges *ranges = &c->ranges;
    if (!ranges->count || ranges->occurrence < 0) return;
    uint64_t profile = fingerprint_profile(c);
    uint8_t *to = nf_predictor_buffer(p, profile, ranges->count, ranges->occurrence);
    if (!to) return;
    for (int64_t row = 0; row < ranges->count; row++) {
        uint8_t observed = ranges->observed[row];
        if (observed == NF_UNKNOWN_RANGE) observed = nf_range_of(ranges->mean_square[row]);
        to[row] = observed == NF_UNKNOWN_RANGE ? ranges->source[row] : observed;
    }
    nf_predictor_learn(p, profile, ranges->occurrence, TOLERANCE);
}
