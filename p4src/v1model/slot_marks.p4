// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What sticks to a sum: the overflow, congestion and float flags (OR) and the block exponent (maximum) of all contributions.
//
//   register  marks[slot]: flags:8 exponent:8
//   written   by claims (overwrite) and by every other packet of the same chunk, also a repeated one: joining is idempotent
//   stale     cannot be seen: a claim overwrites it together with the tag

control SlotMarks(inout headers_t hdr, in metadata_t meta) {

    register<bit<16>>(SLOTS) marks;

    @hidden action clean() {
        hdr.netfold.flags = hdr.netfold.flags & FLAGS_OF_A_SLOT;
        if (hdr.ipv4.ecn == ECN_CE) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_CONGESTION;
        }
    }

    @hidden action claim() {
        marks.write(meta.slot.index, hdr.netfold.flags ++ hdr.netfold.exponent);
    }

    @hidden action join() {
        bit<16> held;
        marks.read(held, meta.slot.index);
        hdr.netfold.flags = hdr.netfold.flags | held[15:8];
        if (held[7:0] > hdr.netfold.exponent) {
            hdr.netfold.exponent = held[7:0];
        }
        marks.write(meta.slot.index, hdr.netfold.flags ++ hdr.netfold.exponent);
    }

    @hidden action read() {
        bit<16> held;
        marks.read(held, meta.slot.index);
        hdr.netfold.flags = held[15:8];
        hdr.netfold.exponent = held[7:0];
    }

    JOINT_ACCESS(access, claim, join, read)

    apply {
        clean();
        access.apply();
    }
}
