// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What happens next? Read this table first: its rows are those of docs/reference/protocol.md, sections 3.2 and 3.7.
//
// A program with quorums (HAS_QUORUM, quorum/on.p4) has the key `seal`, and the rows that need it. The target (arch.p4) defines
// ANNOTATE.

#ifdef HAS_QUORUM
#define ROW(role, kind, age, seal, duplicate, complete, ttl) (role, kind, age, seal, duplicate, complete, ttl)
#else
#define ROW(role, kind, age, seal, duplicate, complete, ttl) (role, kind, age, duplicate, complete, ttl)
#endif

control Verdict(inout headers_t hdr, inout metadata_t meta) {

    action refuse() {}  // the verdict is the reason that admission gave

    action drop(verdict_t reason) {
        meta.verdict = reason;
    }

    action accumulate() {
        meta.verdict = verdict_t.ACCUMULATED;
    }

    // A node's own packet starts with a TTL of 65, of which the egress takes one.
#define RESET_IP_FIELDS hdr.ipv4.ttl = 65; hdr.ipv4.ecn = ECN_ECT0;

    // The packet becomes the result: sent from the root's address, to the sender's, with the job's ports.
    action make_result() {
        ipv4_t sender = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = sender;
        RESET_IP_FIELDS
        ANNOTATE
        hdr.netfold.kind = kind_t.RESULT;
    }

    action send_result() {
        meta.verdict = verdict_t.RESULT_SENT;
        make_result();
    }

    action resend_result() {
        meta.verdict = verdict_t.RESULT_RESENT;
        make_result();
    }

    // The packet becomes the node's contribution to its parent. The header's flags are the slot's attributes.
    action make_partial_sum() {
        RESET_IP_FIELDS
        ANNOTATE
        hdr.netfold.child = meta.up_child;
    }

    action send_sum() {
        meta.verdict = verdict_t.SUM_SENT;
        make_partial_sum();
    }

    action resend_sum() {
        meta.verdict = verdict_t.SUM_RESENT;
        make_partial_sum();
    }

    action forward() {
        meta.verdict = verdict_t.FORWARDED;
    }

    action multicast() {
        meta.verdict = verdict_t.MULTICAST;
    }

    action read_slot() {
        meta.verdict = verdict_t.SLOT_READ;
        hdr.netfold.tag = meta.slot.tag;
    }

    action reset_slot() {
        meta.verdict = verdict_t.SLOT_RESET;
        hdr.netfold.tag = meta.slot.tag;
    }

#ifdef HAS_QUORUM
    // The sealed sum, to the late sender alone.
    action send_late() {
        meta.verdict = verdict_t.LATE;
        make_result();
    }

    // A result without a sum, to its sender alone.
    action send_slot_reused() {
        meta.verdict = verdict_t.SLOT_REUSED;
        make_result();
        hdr.netfold.flags = FLAG_QUORUM | FLAG_SLOT_REUSED;
    }
#endif

    @id(5)
    table verdict {
        key = {
            meta.role              : exact   @name("role");
            hdr.netfold.kind       : ternary @name("kind");
            meta.slot.age          : ternary @name("age");
#ifdef HAS_QUORUM
            meta.slot.seal         : ternary @name("seal");
#endif
            meta.slot.is_duplicate : ternary @name("duplicate");
            meta.slot.is_complete  : ternary @name("complete");
            hdr.ipv4.ttl           : ternary @name("ttl");
        }
        actions = {
            refuse; drop; accumulate; send_result; resend_result; send_sum; resend_sum; forward; multicast; read_slot; reset_slot;
#ifdef HAS_QUORUM
            send_late; send_slot_reused;
#endif
        }
        const entries = {
            //  role               kind          age          seal  duplicate complete  ttl
            ROW(role_t.NONE,       _,            _,           _,        _, _, _) : refuse();
            ROW(role_t.MANAGEMENT, kind_t.READ,  _,           _,        _, _, _) : read_slot();
            ROW(role_t.MANAGEMENT, kind_t.RESET, _,           _,        _, _, _) : reset_slot();

            // A forwarded packet loses one of its TTL: entries that form a circle cannot keep it.
            ROW(role_t.FORWARD,    _,            _,           _,        _, _, 0 &&& 0xFE) : drop(verdict_t.EXPIRED);
            ROW(role_t.MULTICAST,  _,            _,           _,        _, _, 0 &&& 0xFE) : drop(verdict_t.EXPIRED);
            ROW(role_t.FORWARD,    _,            _,           _,        _, _, _) : forward();
            ROW(role_t.MULTICAST,  _,            _,           _,        _, _, _) : multicast();

            // Section 3.7: the sum is sealed, or the slot holds a newer chunk.
#ifdef HAS_QUORUM
            ROW(role_t.INNER,      _,            _,           seal_t.SEALING, _, _, _) : send_sum();
            ROW(role_t.ROOT,       _,            _,           seal_t.SEALING, _, _, _) : send_result();
            ROW(role_t.INNER,      _,            _,           seal_t.SEALED, _, _, _) : resend_sum();
            ROW(role_t.ROOT,       _,            _,           seal_t.SEALED, _, _, _) : resend_result();
            ROW(role_t.ROOT,       _,            _,           seal_t.LATE, _, _, _) : send_late();
            ROW(role_t.ROOT,       _,            _,           seal_t.SLOT_REUSED, _, _, _) : send_slot_reused();
            ROW(role_t.INNER,      _,            _,           seal_t.BYPASS, _, _, 0 &&& 0xFE) : drop(verdict_t.EXPIRED);
            ROW(role_t.INNER,      _,            _,           seal_t.BYPASS, _, _, _) : forward();
#endif

            // Section 3.2. The slot holds a newer chunk: all senders have this one's result.
            ROW(role_t.INNER,      _,            age_t.OLDER, _,        _, _, _) : drop(verdict_t.STALE_CHUNK);
            ROW(role_t.ROOT,       _,            age_t.OLDER, _,        _, _, _) : drop(verdict_t.STALE_CHUNK);

            // The last child's contribution.
            ROW(role_t.INNER,      _,            _,           _,        0, 1, _) : send_sum();
            ROW(role_t.ROOT,       _,            _,           _,        0, 1, _) : send_result();

            // A duplicate of a complete chunk: its sender has lost the result.
            ROW(role_t.INNER,      _,            _,           _,        1, 1, _) : resend_sum();
            ROW(role_t.ROOT,       _,            _,           _,        1, 1, _) : resend_result();

            // Contributions are missing.
            ROW(role_t.INNER,      _,            _,           _,        0, 0, _) : accumulate();
            ROW(role_t.ROOT,       _,            _,           _,        0, 0, _) : accumulate();
            ROW(role_t.INNER,      _,            _,           _,        1, 0, _) : drop(verdict_t.DUPLICATE);
            ROW(role_t.ROOT,       _,            _,           _,        1, 0, _) : drop(verdict_t.DUPLICATE);
        }
        const default_action = drop(verdict_t.MALFORMED);
        size = 32;
    }

    apply {
        verdict.apply();
    }
}
#undef RESET_IP_FIELDS
#undef ROW
