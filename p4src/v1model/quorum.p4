// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Trees whose sums may be sealed without everybody: docs/protocol.md, section 3.7. A packet of such a tree has FLAG_QUORUM;
// any other one touches nothing here.
//
//   register  quorum_who[slot]: bit b set: the sender with bit b is in. As the bitmap, but the senders of a root are more
//             than its children
//   register  quorum_state[slot]: asked:1 sealed:1 pad:7 count:7
//   written   by claims (overwrite), by adds, and by whoever says that its deadline is over
//   stale     cannot be seen: a claim overwrites both together with the tag
//
// The rules of section 3.2 stay where they are: what is late looks to them like a child that asks again for what is complete.

#ifndef NETFOLD_QUORUM
#define NETFOLD_QUORUM

const flags_t FLAG_QUORUM = 0x20;  // of a tree with a quorum: the reserved byte counts contributions
const flags_t FLAG_SEAL   = 0x10;  // up: a deadline is over. Down: the contribution of the child that is named was late
const flags_t FLAG_LAPPED = 0x08;  // down: the slot has moved on, the sum cannot be had any more

const verdict_t LATE   = (verdict_t)24;
const verdict_t LAPPED = (verdict_t)25;

#define COUNT 6:0

enum bit<2> beside_t {
    NOTHING = 0,
    PASSED  = 1,  // an inner node passes it on, it touches no sum
    LATE    = 2,
    LAPPED  = 3
}

struct quorum_t {
    bit<1>   applies;
    bit<7>   least;   // contributions; 0 at an inner node
    bit<1>   asked;
    bit<1>   sealed;  // by this packet
    bit<7>   count;
    beside_t beside;
}

// Before the registers of the sum, behind the tag.
control QuorumEntry(inout headers_t hdr, inout metadata_t meta, inout quorum_t quorum) {

    register<bitmap_t>(SLOTS) quorum_who;
    register<bit<16>>(SLOTS)  quorum_state;

    @brief("At the root of this tree a sum may be sealed with so many contributions, at an inner node (0) with any.")
    action of_tree(bit<7> least) {
        quorum.applies = 1;
        quorum.least = least;
    }

    table quorums {
        key = { meta.tree_index : exact @name("tree_index"); }
        actions = { of_tree; @defaultonly NoAction; }
        const default_action = NoAction();
        size = TREES;
    }

    @hidden action look() {
        bitmap_t who = 0;
        bit<16> held = 0;
        if (meta.slot.age == age_t.SAME) {
            quorum_who.read(who, meta.slot.index);
            quorum_state.read(held, meta.slot.index);
        }
        bitmap_t mine = who & meta.bit_of_child;
        bit<1> was_sealed = held[14:14];
        quorum.asked = held[15:15];
        quorum.count = held[COUNT];
        if (was_sealed == 1 && mine == 0) {
            quorum.beside = beside_t.PASSED;
            if (meta.role == role_t.ROOT) {
                quorum.beside = beside_t.LATE;
                // the sum is read as if one who is in asked for it; of what comes with it only congestion joins
                meta.bit_of_child = who;
                meta.full = who;
                hdr.netfold.exponent = 0;
                hdr.netfold.flags = hdr.netfold.flags & FLAG_CONGESTION;
            }
        } else {
            if ((hdr.netfold.flags & FLAG_SEAL) != 0) {
                quorum.asked = 1;
            }
            if (mine == 0) {
                quorum.count = quorum.count + hdr.netfold.reserved[COUNT];
            }
            who = who | meta.bit_of_child;
            bit<1> done = was_sealed;
            if (quorum.asked == 1 && quorum.count >= quorum.least) {
                done = 1;
            }
            if (quorum.asked == 0 && (who & meta.full) == meta.full) {
                done = 1;
            }
            quorum.sealed = done & ~was_sealed;
            meta.full = done == 1 ? who : 0;
            quorum_who.write(meta.slot.index, who);
            quorum_state.write(meta.slot.index, quorum.asked ++ done ++ 7w0 ++ quorum.count);
        }
    }

    apply {
        quorums.apply();
        if (quorum.applies == 1) {
            if (meta.slot.age != age_t.OLDER) {
                look();
            } else if (meta.role == role_t.ROOT) {
                quorum.beside = beside_t.LAPPED;
            } else {
                quorum.beside = beside_t.PASSED;
            }
        }
    }
}

// Behind the way out: what the packet says of the quorum.
control QuorumExit(inout headers_t hdr, inout metadata_t meta, inout quorum_t quorum, inout standard_metadata_t standard) {

    @hidden action tell() {
        hdr.netfold.flags = hdr.netfold.flags | FLAG_QUORUM;
        hdr.netfold.reserved = 1w0 ++ quorum.count;
    }

    // A result without a sum, as verdict.p4 turns one around, to who asked.
    @hidden action lapped() {
        ipv4_t sender = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = sender;
        hdr.ipv4.ttl = 65;
        hdr.ipv4.ecn = ECN_ECT0;
        hdr.netfold.kind = kind_t.RESULT;
        hdr.netfold.flags = FLAG_QUORUM | FLAG_LAPPED;
        hdr.netfold.reserved = 0;
        meta.verdict = LAPPED;
        SEND_BY(meta.ingress_port);
        ROUTED;
    }

    apply {
        if (quorum.beside == beside_t.LAPPED) {
            lapped();
        } else if (meta.verdict == verdict_t.SUM_SENT || meta.verdict == verdict_t.SUM_REPEATED) {
            tell();
            if (quorum.asked == 1) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_SEAL;
            }
        } else if (meta.verdict == verdict_t.RESULT_SENT || meta.verdict == verdict_t.RESULT_REPEATED) {
            tell();
            if (quorum.beside == beside_t.LATE) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_SEAL;
                meta.verdict = LATE;
            }
        }
    }
}

#endif
