// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The slot of the packet: each register is touched by one action a packet, the tag first. A packet that bypasses the slot
// touches its tag alone.

#include "slot_tag.p4"
#include "slot_bitmap.p4"
#include "slot_attributes.p4"

control Slot(inout headers_t hdr, inout metadata_t meta) {

    SlotTag()        tag;
    Quorum()         quorum;
    SlotBitmap()     bitmap;
    SlotAttributes() attributes;
    Lanes()          lanes;

    apply {
        if (meta.role == role_t.INNER || meta.role == role_t.ROOT || meta.role == role_t.MANAGEMENT) {
            tag.apply(hdr, meta);
            quorum.apply(hdr, meta);
            if (meta.slot.seal != seal_t.BYPASS) {
                bitmap.apply(meta);
                attributes.apply(hdr, meta);
                lanes.apply(hdr, meta);
            }
        }
    }
}
