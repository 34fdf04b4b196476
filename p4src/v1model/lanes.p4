// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is the sum?
//
//   register  lane_00 ... lane_ff[slot]: the sums of the chunk in the slot
//   written   by claims (overwrite) and adds (saturating; a lane at a rail stays there until the next claim)
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

    apply {
        access.apply();
        if (meta.role == role_t.MANAGER || meta.slot.complete == 1) {
            flag_rails();
        }
    }
}
