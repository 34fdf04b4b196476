// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which contributions does the sum have, and is it complete? States as in v1model/slot_bitmap.p4.

control SlotBitmap(inout metadata_t meta) {

    Register<bitmap_t, slot_index_t>(SLOTS, 0) bitmaps;

    RegisterAction<bitmap_t, slot_index_t, bitmap_t>(bitmaps) claim_bitmap = {
        void apply(inout bitmap_t held) {
            held = meta.child_mask;
        }
    };

    RegisterAction<bitmap_t, slot_index_t, bitmap_t>(bitmaps) merge_bitmap = {
        void apply(inout bitmap_t held, out bitmap_t seen) {
            seen = held;
            held = held | meta.child_mask;
        }
    };

    RegisterAction<bitmap_t, slot_index_t, bitmap_t>(bitmaps) read_bitmap = {
        void apply(inout bitmap_t held, out bitmap_t seen) {
            seen = held;
        }
    };

    @hidden action claim() {
        claim_bitmap.execute(meta.slot.index);
    }

    @hidden action merge() {
        meta.slot.bitmap_before = merge_bitmap.execute(meta.slot.index);
    }

    @hidden action read() {
        meta.slot.bitmap_before = read_bitmap.execute(meta.slot.index);
    }

    MERGE_ACCESS(access, claim, merge, read)

    bitmap_t joined;

    @hidden action compare() {
        meta.slot.own_bit_seen = meta.slot.bitmap_before & meta.child_mask;
        joined = meta.slot.bitmap_before | meta.child_mask;
    }

    // A table, so that the compiler does not put these expressions into the conditions below, which cannot have them.
    @hidden table comparison {
        actions = { compare; }
        const default_action = compare();
    }

    apply {
        access.apply();
        comparison.apply();
        if (meta.slot.own_bit_seen != 0) {
            meta.slot.is_duplicate = 1;
        }
        if (joined == meta.full_mask) {
            meta.slot.is_complete = 1;
        }
    }
}
