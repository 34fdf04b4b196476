// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What sticks to a sum: the overflow and congestion flags (OR) and the block exponent (maximum) of all contributions.
// States as in v1model/slot_marks.p4, in two registers: an action gives one word to the packet, and these are two.

control SlotMarks(inout headers_t hdr, in metadata_t meta) {

    flags_t own;  // of this packet

    Register<flags_t, slot_index_t>(SLOTS, 0) flags;
    Register<bit<8>, slot_index_t>(SLOTS, 0) exponents;

    RegisterAction<flags_t, slot_index_t, flags_t>(flags) claim_flags = {
        void apply(inout flags_t held) {
            held = own;
        }
    };

    RegisterAction<flags_t, slot_index_t, flags_t>(flags) join_flags = {
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

    RegisterAction<bit<8>, slot_index_t, bit<8>>(exponents) join_exponent = {
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
    @hidden action join_the_flags() {
        hdr.netfold.flags = join_flags.execute(meta.slot.index);
    }
    @hidden action read_the_flags() {
        hdr.netfold.flags = read_flags.execute(meta.slot.index);
    }
    @hidden action claim_the_exponent() {
        claim_exponent.execute(meta.slot.index);
    }
    @hidden action join_the_exponent() {
        hdr.netfold.exponent = join_exponent.execute(meta.slot.index);
    }
    @hidden action read_the_exponent() {
        hdr.netfold.exponent = read_exponent.execute(meta.slot.index);
    }

    JOINT_ACCESS(access_flags, claim_the_flags, join_the_flags, read_the_flags)
    JOINT_ACCESS(access_exponent, claim_the_exponent, join_the_exponent, read_the_exponent)

    @hidden action clean() {
        own = hdr.netfold.flags & (FLAG_OVERFLOW | FLAG_CONGESTION);
    }

    @hidden action mark() {
        own = own | FLAG_CONGESTION;
    }

    @hidden table cleaning {
        actions = { clean; }
        const default_action = clean();
    }

    apply {
        cleaning.apply();
        if (hdr.ipv4.ecn == ECN_CE) {
            mark();
        }
        access_flags.apply();
        access_exponent.apply();
    }
}
