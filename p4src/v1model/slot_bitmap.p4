// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which contributions does the sum have, and is it complete?
//
//   register  bitmaps[slot]: bit b set: the contribution of the child with bit b is in the sum
//   written   by claims (the claiming child alone) and by adds (one more)
//   stale     cannot be seen: a claim overwrites it together with the tag

control SlotBitmap(inout metadata_t meta) {

    register<bitmap_t>(SLOTS) bitmaps;

    @hidden action claim() {
        meta.slot.bitmap_before = 0;
        bitmaps.write(meta.slot.index, meta.child_mask);
    }

    @hidden action merge() {
        bitmaps.read(meta.slot.bitmap_before, meta.slot.index);
        bitmaps.write(meta.slot.index, meta.slot.bitmap_before | meta.child_mask);
    }

    @hidden action read() {
        bitmaps.read(meta.slot.bitmap_before, meta.slot.index);
    }

    @hidden action evaluate_bitmap() {
        meta.slot.own_bit_seen = (meta.slot.bitmap_before & meta.child_mask) != 0 ? 1w1 : 1w0;
        meta.slot.is_duplicate = meta.slot.own_bit_seen;
        meta.slot.is_complete = (meta.slot.bitmap_before | meta.child_mask) == meta.full_mask ? 1w1 : 1w0;
    }

    MERGE_ACCESS(access, claim, merge, read)

    apply {
        access.apply();
        evaluate_bitmap();
    }
}
