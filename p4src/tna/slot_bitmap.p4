// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Who is in, and is it complete? States as in v1model/slot_bitmap.p4.

control SlotBitmap(inout metadata_t meta) {

    Register<bitmap_t, slot_index_t>(SLOTS, 0) bitmaps;

    RegisterAction<bitmap_t, slot_index_t, bitmap_t>(bitmaps) claim_bitmap = {
        void apply(inout bitmap_t held) {
            held = meta.bit_of_child;
        }
    };

    RegisterAction<bitmap_t, slot_index_t, bitmap_t>(bitmaps) join_bitmap = {
        void apply(inout bitmap_t held, out bitmap_t seen) {
            seen = held;
            held = held | meta.bit_of_child;
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

    @hidden action join() {
        meta.slot.seen = join_bitmap.execute(meta.slot.index);
    }

    @hidden action read() {
        meta.slot.seen = read_bitmap.execute(meta.slot.index);
    }

    JOINT_ACCESS(access, claim, join, read)

    bitmap_t joined;

    @hidden action compare() {
        meta.slot.again = meta.slot.seen & meta.bit_of_child;
        joined = meta.slot.seen | meta.bit_of_child;
    }

    // A table, so that the compiler does not put these expressions into the conditions below, which cannot have them.
    @hidden table comparison {
        actions = { compare; }
        const default_action = compare();
    }

    apply {
        access.apply();
        comparison.apply();
        if (meta.slot.again != 0) {
            meta.slot.repeated = 1;
        }
        if (joined == meta.full) {
            meta.slot.complete = 1;
        }
    }
}
