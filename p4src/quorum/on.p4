// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// May the sum be sealed without all contributions, and is this one late? docs/reference/protocol.md, section 3.7. Packets of
// a tree with a quorum have FLAG_QUORUM; no other packet is changed here.
//
//   register  quorum_bitmap[slot]: bit b set: the contribution of the sender with bit b is counted. A root has bits for
//             more senders than its children
//   register  quorum_state[slot]: seal_requested:1 sealed:1 pad:7 count:7
//   written   by claims (overwrite), by adds, and by requests to seal
//   stale     cannot be seen: a claim overwrites both together with the tag
//
// Quorum decides before the slot's other registers are touched. They get the decision as masks: `full_mask` is the
// sealed sum's bitmap, or 0, which no bitmap equals, as long as the sum is not sealed.

#ifndef NETFOLD_QUORUM
#define NETFOLD_QUORUM

#define HAS_QUORUM  // common/verdict.p4 has the rows

#define COUNT 6:0

control Quorum(inout headers_t hdr, inout metadata_t meta) {

    register<bitmap_t>(SLOTS) quorum_bitmap;
    register<bit<16>>(SLOTS)  quorum_state;

    bit<7> quorum;  // contributions that are enough; 0 at an inner node
    bit<7> count;
    bit<1> seal_requested;

    @brief("Contributions with which a sum of this tree may be sealed at its root; 0 at an inner node: any.")
    action set_quorum(bit<7> min_contributions) {
        quorum = min_contributions;
    }

    @id(4)
    table quorums {
        key = { meta.tree_index : exact @name("tree_index"); }
        actions = { set_quorum; @defaultonly NoAction; }
        const default_action = NoAction();
        size = TREES;
    }

    @hidden action update_quorum() {
        bitmap_t counted = 0;
        bit<16> state = 0;
        if (meta.slot.age == age_t.SAME) {
            quorum_bitmap.read(counted, meta.slot.index);
            quorum_state.read(state, meta.slot.index);
        }
        bitmap_t own_bit = counted & meta.child_mask;
        bit<1> was_sealed = state[14:14];
        seal_requested = state[15:15];
        count = state[COUNT];
        if (was_sealed == 1 && own_bit == 0) {
            meta.slot.seal = seal_t.BYPASS;
            if (meta.role == role_t.ROOT) {
                meta.slot.seal = seal_t.LATE;
                // A late contribution is handled as a duplicate of a complete chunk; only its congestion is merged.
                meta.child_mask = counted;
                meta.full_mask = counted;
                hdr.netfold.exponent = 0;
                hdr.netfold.flags = hdr.netfold.flags & FLAG_CONGESTION;
            }
        } else {
            if ((hdr.netfold.flags & FLAG_SEAL) != 0) {
                seal_requested = 1;
            }
            if (own_bit == 0) {
                count = count + hdr.netfold.reserved[COUNT];
            }
            counted = counted | meta.child_mask;
            bit<1> is_sealed = was_sealed;
            if (seal_requested == 1 && count >= quorum) {
                is_sealed = 1;
            }
            if (seal_requested == 0 && (counted & meta.full_mask) == meta.full_mask) {
                is_sealed = 1;
            }
            if (is_sealed == 1) {
                meta.slot.seal = was_sealed == 1 ? seal_t.SEALED : seal_t.SEALING;
            }
            meta.full_mask = is_sealed == 1 ? counted : 0;
            quorum_bitmap.write(meta.slot.index, counted);
            quorum_state.write(meta.slot.index, seal_requested ++ is_sealed ++ 7w0 ++ count);
        }
    }

    // Of a sum that leaves: how many contributions it has, and whether a deadline has passed below (up) or the receiver
    // was late (down).
    @hidden action write_quorum_fields() {
        meta.annotation = 1w0 ++ count;
        meta.quorum_flags = FLAG_QUORUM;
        if (meta.slot.seal == seal_t.LATE || (meta.role == role_t.INNER && seal_requested == 1)) {
            meta.quorum_flags = FLAG_QUORUM | FLAG_SEAL;
        }
    }

    apply {
        count = 0;
        seal_requested = 0;
        if ((hdr.netfold.flags & FLAG_QUORUM) != 0 && meta.role != role_t.MANAGEMENT) {
            if (quorums.apply().hit) {
                if (meta.slot.age != age_t.OLDER) {
                    update_quorum();
                } else if (meta.role == role_t.ROOT) {
                    meta.slot.seal = seal_t.SLOT_REUSED;
                } else {
                    meta.slot.seal = seal_t.BYPASS;
                }
                write_quorum_fields();
            }
        }
    }
}
#undef COUNT

#endif
