// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Is the chunk new? The tag register has the chunk that a slot holds. States as in v1model/slot_tag.p4.

control SlotTag(inout headers_t hdr, inout metadata_t meta) {

    Register<tag_t, slot_index_t>(SLOTS, 0) tags;

    // The comparisons leave as a one-hot number, which is what age_t is: neither holds, newer, same.
    RegisterAction<tag_t, slot_index_t, bit<4>>(tags) compare_and_claim_tag = {
        void apply(inout tag_t held, out bit<4> age) {
            age = this.predicate(hdr.netfold.tag > held, hdr.netfold.tag == held);
            if (hdr.netfold.tag > held) {
                held = hdr.netfold.tag;
            }
        }
    };

    RegisterAction<tag_t, slot_index_t, tag_t>(tags) read_tag = {
        void apply(inout tag_t held, out tag_t tag) {
            tag = held;
        }
    };

    RegisterAction<tag_t, slot_index_t, tag_t>(tags) reset_tag = {
        void apply(inout tag_t held, out tag_t tag) {
            tag = held;
            held = 0;
        }
    };

    @hidden action compare_and_claim() {
        meta.slot.age = (age_t)compare_and_claim_tag.execute(meta.slot.index);
        hdr.bridge.has_slot = 1;
    }

    @hidden action read() {
        meta.slot.tag = read_tag.execute(meta.slot.index);
        hdr.bridge.has_slot = 1;
    }

    @hidden action reset() {
        meta.slot.tag = reset_tag.execute(meta.slot.index);
        hdr.bridge.has_slot = 1;
    }

    TAG_ACCESS(access, compare_and_claim, read, reset)

    apply {
        access.apply();
    }
}
