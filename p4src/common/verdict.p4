// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What happens next? The one table to read first: the rows of docs/protocol.md, section 3.2, as constant entries.

control Verdict(inout headers_t hdr, inout metadata_t meta) {

    action refuse() {}  // the verdict is the reason that admission gave

    action drop(verdict_t reason) {
        meta.verdict = reason;
    }

    action absorb() {
        meta.verdict = verdict_t.ABSORBED;
    }

    // What a node makes itself starts with a new time to live, of which the egress takes one.
#define ANEW hdr.ipv4.ttl = 65; hdr.ipv4.ecn = ECN_ECT0; hdr.netfold.reserved = 0;

    // The packet in hand becomes the result: back from the root's address, in the job's own ports.
    action turn_around() {
        ipv4_t sender = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = sender;
        ANEW
        hdr.netfold.kind = kind_t.RESULT;
    }

    action send_result() {
        meta.verdict = verdict_t.RESULT_SENT;
        turn_around();
    }

    action repeat_result() {
        meta.verdict = verdict_t.RESULT_REPEATED;
        turn_around();
    }

    // The packet in hand becomes the node's own contribution. The marks it carries upwards are in the header's flags.
    action climb() {
        ANEW
        hdr.netfold.child = meta.up_child;
    }

    action send_sum() {
        meta.verdict = verdict_t.SUM_SENT;
        climb();
    }

    action repeat_sum() {
        meta.verdict = verdict_t.SUM_REPEATED;
        climb();
    }

    action pass() {
        meta.verdict = verdict_t.PASSED;
    }

    action relay() {
        meta.verdict = verdict_t.RELAYED;
    }

    action read_slot() {
        meta.verdict = verdict_t.SLOT_READ;
        hdr.netfold.tag = meta.slot.tag;
    }

    action reset_slot() {
        meta.verdict = verdict_t.SLOT_RESET;
        hdr.netfold.tag = meta.slot.tag;
    }

    table verdict {
        key = {
            meta.role          : exact   @name("role");
            hdr.netfold.kind   : ternary @name("kind");
            meta.slot.age      : ternary @name("age");
            meta.slot.repeated : ternary @name("repeated");
            meta.slot.complete : ternary @name("complete");
            hdr.ipv4.ttl       : ternary @name("ttl");
        }
        actions = {
            refuse; drop; absorb; send_result; repeat_result; send_sum; repeat_sum; pass; relay; read_slot; reset_slot;
        }
        const entries = {
            // role           kind            age           repeated complete ttl
            (role_t.NONE,     _,              _,            _, _,    _) : refuse();
            (role_t.MANAGER,  kind_t.READ,    _,            _, _,    _) : read_slot();
            (role_t.MANAGER,  kind_t.RESET,   _,            _, _,    _) : reset_slot();

            // what goes on as it is lives no longer for it: entries that form a circle cannot keep a packet
            (role_t.PASS,     _,              _,            _, _,    0 &&& 0xFE) : drop(verdict_t.EXPIRED);
            (role_t.RELAY,    _,              _,            _, _,    0 &&& 0xFE) : drop(verdict_t.EXPIRED);
            (role_t.PASS,     _,              _,            _, _,    _) : pass();
            (role_t.RELAY,    _,              _,            _, _,    _) : relay();

            // the slot has moved on: nobody waits for this chunk any more
            (role_t.INNER,    _,              age_t.OLDER,  _, _,    _) : drop(verdict_t.STALE_CHUNK);
            (role_t.ROOT,     _,              age_t.OLDER,  _, _,    _) : drop(verdict_t.STALE_CHUNK);

            // the last child is in
            (role_t.INNER,    _,              _,            0, 1,    _) : send_sum();
            (role_t.ROOT,     _,              _,            0, 1,    _) : send_result();

            // a child asks again for what is complete: what it waits for was lost on the way
            (role_t.INNER,    _,              _,            1, 1,    _) : repeat_sum();
            (role_t.ROOT,     _,              _,            1, 1,    _) : repeat_result();

            // others are awaited
            (role_t.INNER,    _,              _,            0, 0,    _) : absorb();
            (role_t.ROOT,     _,              _,            0, 0,    _) : absorb();
            (role_t.INNER,    _,              _,            1, 0,    _) : drop(verdict_t.DUPLICATE);
            (role_t.ROOT,     _,              _,            1, 0,    _) : drop(verdict_t.DUPLICATE);
        }
        const default_action = drop(verdict_t.MALFORMED);
        size = 32;
    }

    apply {
        verdict.apply();
    }
}
#undef ANEW
