// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is the sum? The form for BMv2, whose primitives cost the same for 32 bits and for 2,048: 64 lanes are one word.
//
//   register  lanes_0, lanes_1 ...[slot]: the sums of 64 lanes of the chunk in the slot, lane 0 in the highest bits
//   register  overflows[slot]: 1 if an addition since the claim has left the range of int32 in any lane
//   written   by claims (overwrite) and adds
//   stale     cannot be seen: a claim overwrites both together with the tag
//
// Words without their sign bits are added: no carry reaches the next lane, since bit 31 of each lane is free for it. The
// sign bits are added by XOR. An addition has left the range where the carry into the sign is neither addend's sign. Such
// a lane wraps around; O marks the sum (docs/reference/protocol.md, N8 and N9).
//
// Lanes are int32 alone: FLAG_FLOATS is dropped.

#ifndef NETFOLD_LANES_WIDE
#define NETFOLD_LANES_WIDE

const bool    ADDS_FLOATS = false;
const flags_t SLOT_FLAGS  = FLAG_OVERFLOW | FLAG_CONGESTION | FLAG_DATA;

#define SWAP_ALL_LANE_BYTES

// For RoCE: each lane at its maximum.
const bool SUMS_WRAP = true;
#define SATURATE_WORD(n)   hdr.lanes.v##n = ~SIGNS;
#define SATURATE_ALL_LANES FOR_EACH_LANE(SATURATE_WORD)

control Lanes(inout headers_t hdr, in metadata_t meta) {

#define WORD_REGISTER(n) register<lane_field_t>(SLOTS) lanes_##n;
    FOR_EACH_LANE(WORD_REGISTER)
    register<bit<1>>(SLOTS) overflows;

    lane_field_t held;
    bit<1> overflow;

    @hidden action flag_overflow() {
        if (overflow == 1) { hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW; }
    }

    @hidden action claim() {
#define WORD_CLAIM(n) lanes_##n.write(meta.slot.index, hdr.lanes.v##n);
        FOR_EACH_LANE(WORD_CLAIM)
        overflows.write(meta.slot.index, 0);
    }

    // The sum of two words without their sign bits: bit 31 of each lane is its carry into the sign.
#define CARRIES(a, b) ((a & ~SIGNS) + (b & ~SIGNS))

    @hidden action add() {
        overflows.read(overflow, meta.slot.index);
#define WORD_ADD(n) \
        lanes_##n.read(held, meta.slot.index); \
        if (((held ^ CARRIES(held, hdr.lanes.v##n)) & (hdr.lanes.v##n ^ CARRIES(held, hdr.lanes.v##n)) & SIGNS) != 0) { \
            overflow = 1; \
        } \
        hdr.lanes.v##n = CARRIES(held, hdr.lanes.v##n) ^ ((held ^ hdr.lanes.v##n) & SIGNS); \
        lanes_##n.write(meta.slot.index, hdr.lanes.v##n);
        FOR_EACH_LANE(WORD_ADD)
        overflows.write(meta.slot.index, overflow);
        flag_overflow();
    }

    @hidden action read() {
#define WORD_READ(n) lanes_##n.read(hdr.lanes.v##n, meta.slot.index);
        FOR_EACH_LANE(WORD_READ)
        overflows.read(overflow, meta.slot.index);
        flag_overflow();
    }

    // A short contribution claims the slot, completes the sum, or requests it again.
    @hidden action access_short() {
        if (meta.slot.age == age_t.NEWER) {
#define WORD_CLEAR(n) lanes_##n.write(meta.slot.index, 0);
            FOR_EACH_LANE(WORD_CLEAR)
            overflows.write(meta.slot.index, 0);
        } else if (meta.slot.age == age_t.SAME && meta.slot.is_complete == 1) {
            hdr.lanes.setValid();
            read();
        }
    }

    @hidden action access() {
        if (meta.role == role_t.MANAGEMENT || meta.slot.own_bit_seen == 1) {
            read();
        } else if (meta.slot.age == age_t.NEWER) {
            claim();
        } else if (meta.slot.age == age_t.SAME) {
            add();
        }
    }

    apply {
        if (meta.is_short == 1) {
            access_short();
        } else {
            access();
        }
    }
}

#endif
