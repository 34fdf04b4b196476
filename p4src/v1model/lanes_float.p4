// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The sum of two IEEE 754 binary32 in whole numbers, bit by bit what a processor's adder gives: rounded to nearest, ties to even,
// with subnormals, signed zeros and infinities. The only NaN is FLOAT_NAN. The smaller magnitude is shifted to the exponent of the
// larger one; the bits shifted out are ORed into the last bit (sticky), which is all that rounding needs.
//
// Each `if` guards assignments to scalars only, so softswitch makes vector instructions of it. p4c substitutes a variable's value
// wherever no `if` lies between, so a form without them would be as long as all its paths. No `if` sets an exponent to a
// constant: gcc does not vectorize that (docs/decisions/0031).

#ifndef NETFOLD_LANES_FLOAT
#define NETFOLD_LANES_FLOAT

const bool    ADDS_FLOATS = true;
const flags_t SLOT_FLAGS  = FLAG_OVERFLOW | FLAG_CONGESTION | FLAG_FLOATS | FLAG_DATA;

const bit<32> FLOAT_SIGN      = 0x80000000;
const bit<32> FLOAT_MAGNITUDE = 0x7FFFFFFF;
const bit<32> FLOAT_FRACTION  = 0x007FFFFF;
const bit<32> FLOAT_INFINITY  = 0x7F800000;
const bit<32> FLOAT_NAN       = 0x7FC00000;

#define FLOAT_VARIABLES \
    bit<32> f_large; \
    bit<32> f_small; \
    bit<32> f_exponent; \
    bit<32> f_bits; \
    bit<32> f_distance; \
    bit<32> f_less; \
    bit<32> f_sum;

#define MAGNITUDE(v) (v & FLOAT_MAGNITUDE)

// `bits`: the significand and three bits more; its first one is bit 26, but for subnormals, which have the least exponent.
#define UNPACK(v, exponent, bits) \
        exponent = MAGNITUDE(v) >> 23; \
        bits = ((v & FLOAT_FRACTION) << 3) | ((bit<32>)(bit<1>)(exponent > 0) << 26); \
        exponent = exponent + (bit<32>)(bit<1>)(exponent < 1);

// Up to bit 27, as far as the exponent allows.
#define NORMALIZE(n) \
        if (f_bits < (32w1 << (28 - n)) && f_exponent >= n) { f_bits = f_bits << n; f_exponent = f_exponent - n; }

// f_sum := a + b
#define ADD_FLOATS(a, b) \
        f_large = a; \
        f_small = b; \
        if (MAGNITUDE(f_large) < MAGNITUDE(f_small)) { f_large = b; f_small = a; } \
        UNPACK(f_large, f_exponent, f_bits) \
        UNPACK(f_small, f_distance, f_less) \
        f_distance = f_exponent - f_distance; \
        if (f_distance > 31) { f_distance = 31; } \
        f_sum = f_less >> (bit<5>)f_distance; \
        if (f_sum << (bit<5>)f_distance != f_less) { f_sum = f_sum | 1; } \
        if (f_large ^ f_small < FLOAT_SIGN) { f_bits = f_bits + f_sum; } else { f_bits = f_bits - f_sum; } \
        NORMALIZE(16) NORMALIZE(8) NORMALIZE(4) NORMALIZE(2) NORMALIZE(1) \
        f_sum = (f_exponent << 23) + ((f_bits + 7 + ((f_bits >> 4) & 1)) >> 4); \
        if (f_exponent >= 254 || MAGNITUDE(f_large) == FLOAT_INFINITY) { f_sum = FLOAT_INFINITY; } \
        if (f_bits == 0) { f_sum = f_large & f_small & FLOAT_SIGN; } else { f_sum = f_sum | (f_large & FLOAT_SIGN); } \
        if (MAGNITUDE(f_large) > FLOAT_INFINITY || (MAGNITUDE(f_small) == FLOAT_INFINITY && f_large != f_small)) { f_sum = FLOAT_NAN; }

// For Lanes, in actions of 16 lanes, because p4c takes long for longer ones.
#define LANE_ADD_FLOAT(n) \
        lane_##n.read(held, meta.slot.index); \
        lane = (bit<32>)hdr.lanes.v##n; \
        ADD_FLOATS(held, lane) \
        lane_##n.write(meta.slot.index, f_sum); \
        hdr.lanes.v##n = (lane_t)f_sum;
#define ADD_16_FLOATS(p)  @hidden action add_floats_##p() { LANES_16(LANE_ADD_FLOAT, p) }
#define CALL_16_FLOATS(p) add_floats_##p();
#define FLOAT_LANES \
    FLOAT_VARIABLES \
    bit<32> lane; \
    ADD_16_FLOATS(0) FOR_EACH_LATER_16_LANES(ADD_16_FLOATS)
#define ADD_FLOAT_LANES CALL_16_FLOATS(0) FOR_EACH_LATER_16_LANES(CALL_16_FLOATS)

// For RoCE: a float between the byte order of a little-endian host's memory and that of a lane.
#define WORD(n) ((bit<32>)hdr.lanes.v##n)
#define SWAP_LANE_BYTES(n) \
        hdr.lanes.v##n = (lane_t)((WORD(n) << 24) | ((WORD(n) & 0xFF00) << 8) | ((WORD(n) >> 8) & 0xFF00) | (WORD(n) >> 24));
#define SWAP_ALL_LANE_BYTES FOR_EACH_LANE(SWAP_LANE_BYTES)

#include "lanes.p4"

#endif
