// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is the sum?
//
//   register  lane_00 ... lane_ff[slot]: the sums of the chunk in the slot
//   written   by claims (overwrite) and adds (saturating; a lane at a rail stays there until the next claim; floats: IEEE 754)
//   stale     cannot be seen: a claim overwrites it together with the tag
//
// The lanes leave in the header in every case, so that a packet that completes a chunk, or repeats one, carries the sum.

control Lanes(inout headers_t hdr, in metadata_t meta) {

    // The registers hold bit<32>: BMv2 takes what it reads into a signed field for a positive number (its Field::export_bytes
    // wraps only what exceeds the mask), so a sum below zero has to be cast back.
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

    // Overflow: some lane of what leaves is at a rail.
    @hidden action flag_rails() {
#define LANE_FLAG(n) \
        if (hdr.lanes.v##n == LANE_MAX || hdr.lanes.v##n == LANE_MIN) { hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW; }
        FOR_EACH_LANE(LANE_FLAG)
    }

    LANE_ACCESS(access, claim, add, read)

#ifdef FLOATS
    FLOAT_VARIABLES
    bit<32> lane;

    // In actions of 16 lanes, because p4c takes long for longer ones.
#define LANE_ADD_FLOAT(n) \
        lane_##n.read(held, meta.slot.index); \
        lane = (bit<32>)hdr.lanes.v##n; \
        ADD_FLOATS(held, lane) \
        lane_##n.write(meta.slot.index, f_sum); \
        hdr.lanes.v##n = (lane_t)f_sum;
#define ADD_16_FLOATS(p) @hidden action add_floats_##p() { LANES_16(LANE_ADD_FLOAT, p) }
    ADD_16_FLOATS(0) FOR_EACH_LATER_16_LANES(ADD_16_FLOATS)
#endif

    apply {
        bool floats = hdr.netfold.flags & FLAG_FLOATS != 0;
#ifdef FLOATS
        if (floats && meta.role != role_t.MANAGER && meta.slot.age == age_t.SAME && meta.slot.again == 0) {
#define CALL_16_FLOATS(p) add_floats_##p();
            CALL_16_FLOATS(0) FOR_EACH_LATER_16_LANES(CALL_16_FLOATS)
        } else
#endif
        {
            access.apply();
        }
        if (!floats && (meta.role == role_t.MANAGER || meta.slot.complete == 1)) {
            flag_rails();
        }
    }
}
