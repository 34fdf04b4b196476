// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The attributes of a sum: the overflow, congestion and float flags (OR) and the block exponent (maximum) of all contributions.
//
//   register  attributes[slot]: flags:8 exponent:8
//   written   by claims (overwrite) and by every other packet of the same chunk, also a duplicate: merging is idempotent
//   stale     cannot be seen: a claim overwrites it together with the tag

control SlotAttributes(inout headers_t hdr, in metadata_t meta) {

    register<bit<16>>(SLOTS) attributes;

    @hidden action access() {
        bit<16> held = 0;
        if (meta.role == role_t.MANAGEMENT || meta.slot.age == age_t.SAME) {
            attributes.read(held, meta.slot.index);
        }
        if (meta.role == role_t.MANAGEMENT) {
            hdr.netfold.flags = held[15:8];
            hdr.netfold.exponent = held[7:0];
        } else {
            hdr.netfold.flags = (hdr.netfold.flags & SLOT_FLAGS) | held[15:8];
            if (hdr.ipv4.ecn == ECN_CE) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_CONGESTION;
            }
            if (held[7:0] > hdr.netfold.exponent) {
                hdr.netfold.exponent = held[7:0];
            }
            if (meta.slot.age != age_t.OLDER) {
                attributes.write(meta.slot.index, hdr.netfold.flags ++ hdr.netfold.exponent);
            }
        }
    }

    apply {
        access();
    }
}
