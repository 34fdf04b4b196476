// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Who is in, and is it complete?
//
//   register  bitmaps[slot]: bit b set: the child with bit b is in
//   written   by claims (the claiming child alone) and by adds (one more); by nobody else
//   stale     cannot be seen: a claim overwrites it together with the tag

control SlotBitmap(inout metadata_t meta) {

    register<bitmap_t>(SLOTS) bitmaps;

    @hidden action claim() {
        meta.slot.seen = 0;
        bitmaps.write(meta.slot.index, meta.bit_of_child);
    }

    @hidden action join() {
        bitmaps.read(meta.slot.seen, meta.slot.index);
        bitmaps.write(meta.slot.index, meta.slot.seen | meta.bit_of_child);
    }

    @hidden action read() {
        bitmaps.read(meta.slot.seen, meta.slot.index);
    }

    @hidden action judge() {
        meta.slot.again = meta.slot.seen & meta.bit_of_child;
        meta.slot.repeated = meta.slot.again != 0 ? 1w1 : 1w0;
        meta.slot.complete = (meta.slot.seen | meta.bit_of_child) == meta.full ? 1w1 : 1w0;
    }

    JOINT_ACCESS(access, claim, join, read)

    apply {
        access.apply();
        judge();
    }
}
