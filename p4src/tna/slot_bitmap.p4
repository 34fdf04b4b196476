// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which contributions does the sum have, and is it complete? States as in v1model/slot_bitmap.p4, in two registers: a register
// action works on 32 bits. The other register of a child's bit has nothing of it, but each packet runs both: a claim clears all
// bits, and a sum is complete in both words.

typedef bit<32> bitmap_word_t;

#define BITMAP_WORD(name, high, low) \
    Register<bitmap_word_t, slot_index_t>(SLOTS, 0) bitmaps_##name; \
    \
    RegisterAction<bitmap_word_t, slot_index_t, bitmap_word_t>(bitmaps_##name) claim_word_##name = { \
        void apply(inout bitmap_word_t held) { \
            held = meta.child_mask[high:low]; \
        } \
    }; \
    \
    RegisterAction<bitmap_word_t, slot_index_t, bitmap_word_t>(bitmaps_##name) merge_word_##name = { \
        void apply(inout bitmap_word_t held, out bitmap_word_t seen) { \
            seen = held; \
            held = held | meta.child_mask[high:low]; \
        } \
    }; \
    \
    RegisterAction<bitmap_word_t, slot_index_t, bitmap_word_t>(bitmaps_##name) read_word_##name = { \
        void apply(inout bitmap_word_t held, out bitmap_word_t seen) { \
            seen = held; \
        } \
    }; \
    \
    @hidden action claim_##name() { \
        claim_word_##name.execute(meta.slot.index); \
    } \
    \
    @hidden action merge_##name() { \
        meta.slot.bitmap_before[high:low] = merge_word_##name.execute(meta.slot.index); \
    } \
    \
    @hidden action read_##name() { \
        meta.slot.bitmap_before[high:low] = read_word_##name.execute(meta.slot.index); \
    } \
    \
    MERGE_ACCESS(access_##name, claim_##name, merge_##name, read_##name)

control SlotBitmap(inout metadata_t meta) {

    BITMAP_WORD(low, 31, 0)
    BITMAP_WORD(high, 63, 32)

    bitmap_t joined;
    bitmap_t missing;

    @hidden action compare() {
        meta.slot.own_bit_seen = meta.slot.bitmap_before & meta.child_mask;
        joined = meta.slot.bitmap_before | meta.child_mask;
    }

    @hidden action find_missing() {
        missing = joined ^ meta.full_mask;
    }

    // Tables, so that the compiler does not put these expressions into conditions, which cannot have them.
    @hidden table comparison {
        actions = { compare; }
        const default_action = compare();
    }

    @hidden table absence {
        actions = { find_missing; }
        const default_action = find_missing();
    }

    @hidden action evaluate(bit<1> is_duplicate, bit<1> is_complete) {
        meta.slot.is_duplicate = is_duplicate;
        meta.slot.is_complete = is_complete;
    }

    @hidden table evaluation {
        key = {
            meta.slot.own_bit_seen : ternary;
            missing                : ternary;
        }
        actions = { evaluate; }
        const entries = {
            (0, 0) : evaluate(0, 1);
            (0, _) : evaluate(0, 0);
            (_, 0) : evaluate(1, 1);
        }
        const default_action = evaluate(1, 0);
        size = 4;
    }

    apply {
        access_low.apply();
        access_high.apply();
        comparison.apply();
        absence.apply();
        evaluation.apply();
    }
}

#undef BITMAP_WORD
