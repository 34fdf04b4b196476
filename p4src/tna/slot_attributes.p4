// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The attributes of a sum: the overflow and congestion flags (OR) and the block exponent (maximum) of all contributions.
// States as in v1model/slot_attributes.p4, in two registers: an action returns one word, and these are two.

control SlotAttributes(inout headers_t hdr, in metadata_t meta) {

    flags_t own;  // of this packet

    Register<flags_t, slot_index_t>(SLOTS, 0) flags;
    Register<bit<8>, slot_index_t>(SLOTS, 0) exponents;

    RegisterAction<flags_t, slot_index_t, flags_t>(flags) claim_flags = {
        void apply(inout flags_t held) {
            held = own;
        }
    };

    RegisterAction<flags_t, slot_index_t, flags_t>(flags) merge_flags = {
        void apply(inout flags_t held, out flags_t joined) {
            held = held | own;
            joined = held;
        }
    };

    RegisterAction<flags_t, slot_index_t, flags_t>(flags) read_flags = {
        void apply(inout flags_t held, out flags_t read) {
            read = held;
        }
    };

    RegisterAction<bit<8>, slot_index_t, bit<8>>(exponents) claim_exponent = {
        void apply(inout bit<8> held) {
            held = hdr.netfold.exponent;
        }
    };

    RegisterAction<bit<8>, slot_index_t, bit<8>>(exponents) merge_exponent = {
        void apply(inout bit<8> held, out bit<8> largest) {
            held = max(held, hdr.netfold.exponent);
            largest = held;
        }
    };

    RegisterAction<bit<8>, slot_index_t, bit<8>>(exponents) read_exponent = {
        void apply(inout bit<8> held, out bit<8> read) {
            read = held;
        }
    };

    @hidden action claim_the_flags() {
        claim_flags.execute(meta.slot.index);
        hdr.netfold.flags = own;
    }
    @hidden action merge_the_flags() {
        hdr.netfold.flags = merge_flags.execute(meta.slot.index);
    }
    @hidden action read_the_flags() {
        hdr.netfold.flags = read_flags.execute(meta.slot.index);
    }
    @hidden action claim_the_exponent() {
        claim_exponent.execute(meta.slot.index);
    }
    @hidden action merge_the_exponent() {
        hdr.netfold.exponent = merge_exponent.execute(meta.slot.index);
    }
    @hidden action read_the_exponent() {
        hdr.netfold.exponent = read_exponent.execute(meta.slot.index);
    }

    MERGE_ACCESS(access_flags, claim_the_flags, merge_the_flags, read_the_flags)
    MERGE_ACCESS(access_exponent, claim_the_exponent, merge_the_exponent, read_the_exponent)

    @hidden action mask_flags() {
        own = hdr.netfold.flags & (FLAG_OVERFLOW | FLAG_CONGESTION);
    }

    @hidden action mark() {
        own = own | FLAG_CONGESTION;
    }

    @hidden table flag_masking {
        actions = { mask_flags; }
        const default_action = mask_flags();
    }

    apply {
        flag_masking.apply();
        if (hdr.ipv4.ecn == ECN_CE) {
            mark();
        }
        access_flags.apply();
        access_exponent.apply();
    }
}
