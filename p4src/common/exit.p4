// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which way out: the verdict in the target's terms (arch.p4). A verdict that names no way drops the packet.

control Exit(inout headers_t hdr, inout metadata_t meta, WAY_OUT) {

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
        SEND_BY(meta.ingress_port);
        ROUTED;
    }

    @hidden action to_controller() {
        SEND_BY(CPU_PORT);
    }

    @hidden action unrouted() {
        meta.verdict = verdict_t.UNROUTED;
        DROP;
    }

    @hidden table ways {
        key = {
            meta.verdict    : exact;
            meta.up_port    : ternary;
            meta.down_group : ternary;
        }
        actions = { drop; to_workers; to_parent; to_sender; to_controller; unrouted; }
        const entries = {
            // verdict                    up_port down_group
            (verdict_t.RESULT_SENT,       _,      0) : unrouted();
            (verdict_t.RELAYED,           _,      0) : unrouted();
            (verdict_t.RESULT_SENT,       _,      _) : to_workers();
            (verdict_t.RELAYED,           _,      _) : to_workers();
            (verdict_t.SUM_SENT,          0,      _) : unrouted();
            (verdict_t.SUM_REPEATED,      0,      _) : unrouted();
            (verdict_t.PASSED,            0,      _) : unrouted();
            (verdict_t.SUM_SENT,          _,      _) : to_parent();
            (verdict_t.SUM_REPEATED,      _,      _) : to_parent();
            (verdict_t.PASSED,            _,      _) : to_parent();
            (verdict_t.RESULT_REPEATED,   _,      _) : to_sender();
            (verdict_t.SLOT_READ,         _,      _) : to_controller();
            (verdict_t.SLOT_RESET,        _,      _) : to_controller();
        }
        const default_action = drop();
    }

    apply {
        ways.apply();
    }
}
