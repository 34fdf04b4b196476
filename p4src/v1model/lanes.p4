// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is the sum?
//
//   register  lane_00 ... lane_ff[slot]: the sums of the chunk in the slot
//   written   by claims (overwrite; a short one with 0) and adds (saturating; a saturated lane stays so until the next claim; floats: IEEE 754)
//   stale     cannot be seen: a claim overwrites it together with the tag
//
// The header always gets the slot's lanes, so that a packet that completes a chunk, or is a duplicate of one, carries the sum.
// lanes_integer.p4 or lanes_float.p4 defines ADDS_FLOATS, FLOAT_LANES and ADD_FLOAT_LANES.

// For RoCE: a saturated lane shows itself.
const bool SUMS_WRAP = false;
#define SATURATE_ALL_LANES

control Lanes(inout headers_t hdr, in metadata_t meta) {

    // The registers hold bit<32>: BMv2 takes a value that it reads into a signed field for a positive number (its
    // Field::export_bytes wraps only what exceeds the mask), so a sum below zero has to be cast back.
#define LANE_REGISTER(n) register<bit<32>>(SLOTS) lane_##n;
    FOR_EACH_LANE(LANE_REGISTER)

    bit<32> held;
    lane_t sum;

    @hidden action claim() {
#define LANE_CLAIM(n) lane_##n.write(meta.slot.index, (bit<32>)hdr.lanes.v##n);
        FOR_EACH_LANE(LANE_CLAIM)
    }

    @hidden action add() {
#define LANE_ADD(n) \
        lane_##n.read(held, meta.slot.index); \
        sum = (lane_t)held; \
        if (sum != LANE_MAX && sum != LANE_MIN) { sum = sum |+| hdr.lanes.v##n; } \
        lane_##n.write(meta.slot.index, (bit<32>)sum); \
        hdr.lanes.v##n = sum;
        FOR_EACH_LANE(LANE_ADD)
    }

    @hidden action read() {
#define LANE_READ(n) \
        lane_##n.read(held, meta.slot.index); \
        hdr.lanes.v##n = (lane_t)held;
        FOR_EACH_LANE(LANE_READ)
    }

    // A short contribution claims the slot.
    @hidden action clear() {
#define LANE_CLEAR(n) lane_##n.write(meta.slot.index, 0);
        FOR_EACH_LANE(LANE_CLEAR)
    }

    // A short contribution completes the sum, or requests it again.
    @hidden action fill() {
        hdr.lanes.setValid();
        FOR_EACH_LANE(LANE_READ)
    }

    // Overflow: a lane of the packet that leaves is saturated.
    @hidden action flag_saturated() {
#define LANE_FLAG(n) \
        if (hdr.lanes.v##n == LANE_MAX || hdr.lanes.v##n == LANE_MIN) { hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW; }
        FOR_EACH_LANE(LANE_FLAG)
    }

    LANE_ACCESS(access, claim, add, read)

    FLOAT_LANES

    apply {
        bool is_float = hdr.netfold.flags & FLAG_FLOATS != 0;
        if (meta.is_short == 1) {
            if (meta.slot.age == age_t.NEWER) {
                clear();
            } else if (meta.slot.age == age_t.SAME && meta.slot.is_complete == 1) {
                fill();
            }
        } else if (ADDS_FLOATS && is_float && meta.role != role_t.MANAGEMENT && meta.slot.age == age_t.SAME && meta.slot.own_bit_seen == 0) {
            ADD_FLOAT_LANES
        } else {
            access.apply();
        }
        if (!is_float && hdr.lanes.isValid() && (meta.role == role_t.MANAGEMENT || meta.slot.is_complete == 1)) {
            flag_saturated();
        }
    }
}
