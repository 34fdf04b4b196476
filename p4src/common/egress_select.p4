// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Where does the packet leave? The verdict in the target's terms (arch.p4). A verdict without a row drops the packet.

control EgressSelect(inout headers_t hdr, inout metadata_t meta, EGRESS_TARGET) {

    @hidden action drop() {
        DROP;
    }

    @hidden action to_workers() {
        REPLICATE_TO(meta.down_group);
        ROUTED;
    }

    @hidden action to_parent() {
        SEND_BY(meta.up_port);
        ROUTED;
    }

    @hidden action to_sender() {
        SEND_BY(REPLY_PORT);
        ROUTED;
    }

    @hidden action to_controller() {
        SEND_BY(CPU_PORT);
    }

    @hidden action unrouted() {
        meta.verdict = verdict_t.UNROUTED;
        DROP;
    }

    @hidden table egress_actions {
        key = {
            meta.verdict    : exact;
            meta.up_port    : ternary;
            meta.down_group : ternary;
        }
        actions = { drop; to_workers; to_parent; to_sender; to_controller; unrouted; }
        const entries = {
            // verdict                up_port down_group
            (verdict_t.RESULT_SENT,   _,      0) : unrouted();
            (verdict_t.MULTICAST,     _,      0) : unrouted();
            (verdict_t.RESULT_SENT,   _,      _) : to_workers();
            (verdict_t.MULTICAST,     _,      _) : to_workers();
            (verdict_t.SUM_SENT,      0,      _) : unrouted();
            (verdict_t.SUM_RESENT,    0,      _) : unrouted();
            (verdict_t.FORWARDED,     0,      _) : unrouted();
            (verdict_t.SUM_SENT,      _,      _) : to_parent();
            (verdict_t.SUM_RESENT,    _,      _) : to_parent();
            (verdict_t.FORWARDED,     _,      _) : to_parent();
            (verdict_t.RESULT_RESENT, _,      _) : to_sender();
            (verdict_t.LATE,          _,      _) : to_sender();
            (verdict_t.SLOT_REUSED,   _,      _) : to_sender();
            (verdict_t.SLOT_READ,     _,      _) : to_controller();
            (verdict_t.SLOT_RESET,    _,      _) : to_controller();
        }
        const default_action = drop();
    }

    apply {
        egress_actions.apply();
    }
}
