// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which contributions does the sum have, and is it complete?
//
//   register  bitmaps[slot]: bit b set: the contribution of the child with bit b is in the sum
//   written   by claims (the claiming child alone) and by adds (one more)
//   stale     cannot be seen: a claim overwrites it together with the tag

control SlotBitmap(inout metadata_t meta) {

    register<bitmap_t>(SLOTS) bitmaps;

    @hidden action access() {
        meta.slot.bitmap_before = 0;
        if (meta.role == role_t.MANAGEMENT || meta.slot.age == age_t.SAME) {
            bitmaps.read(meta.slot.bitmap_before, meta.slot.index);
        }
        bitmap_t bitmap = meta.slot.bitmap_before | meta.child_mask;
        if (bitmap == meta.full_mask) {
            meta.slot.is_complete = 1;
        }
        if ((meta.slot.bitmap_before & meta.child_mask) != 0) {
            meta.slot.own_bit_seen = 1;
            meta.slot.is_duplicate = 1;
        }
        if (meta.role != role_t.MANAGEMENT && meta.slot.age != age_t.OLDER) {
            bitmaps.write(meta.slot.index, bitmap);
            meta.is_only_added = ~(meta.slot.is_complete | meta.slot.is_duplicate);
        }
    }

    apply {
        access();
    }
}
