// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which way out: the verdict as v1model's standard metadata. A verdict that names no way drops the packet.

control Exit(inout metadata_t meta, inout standard_metadata_t standard) {

    @hidden action drop() {
        mark_to_drop(standard);
    }

    @hidden action to_workers() {
        standard.mcast_grp = meta.down_group;
        meta.routed = 1;
    }

    @hidden action to_port(port_t port) {
        standard.egress_spec = port;
        meta.routed = 1;
    }

    @hidden action unrouted() {
        meta.verdict = verdict_t.UNROUTED;
        mark_to_drop(standard);
    }

    apply {
        if (meta.verdict == verdict_t.RESULT_SENT || meta.verdict == verdict_t.RELAYED) {
            if (meta.down_group == 0) {
                unrouted();
            } else {
                to_workers();
            }
        } else if (meta.verdict == verdict_t.SUM_SENT || meta.verdict == verdict_t.SUM_REPEATED
                   || meta.verdict == verdict_t.PASSED) {
            if (meta.up_port == 0) {
                unrouted();
            } else {
                to_port(meta.up_port);
            }
        } else if (meta.verdict == verdict_t.RESULT_REPEATED) {
            to_port(meta.ingress_port);
        } else if (meta.verdict == verdict_t.SLOT_READ || meta.verdict == verdict_t.SLOT_RESET) {
            standard.egress_spec = CPU_PORT;
        } else {
            drop();
        }
    }
}
