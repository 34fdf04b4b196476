// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The last step before the wire, as in v1model/delivery.p4. The queue's depth is in cells of the traffic manager.

control Delivery(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t standard) {

    action to_switch(mac_t src, mac_t dst) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
    }

    action to_host(mac_t src, mac_t dst, ipv4_t address) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        meta.host_address = address;
    }

    table neighbors {
        key = { standard.egress_port : exact @name("port"); }
        actions = { to_switch; to_host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    action mark_above(bit<19> packets) {
        meta.threshold = (bit<32>)packets;
    }

    @brief("The queue depth in cells from which ECN-capable packets are marked; no entry, no marking.")
    table congestion {
        key = { standard.egress_port : exact @name("port"); }
        actions = { mark_above; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    @hidden action measure() {
        meta.room = meta.threshold |-| meta.depth;
    }

    // A table for the same reason as in slot_bitmap.p4.
    @hidden table queue {
        actions = { measure; }
        const default_action = measure();
    }

    apply {
        meta.depth = (bit<32>)standard.enq_qdepth;
        meta.threshold = 0x7FFFF;
        congestion.apply();
        queue.apply();
        switch (neighbors.apply().action_run) {
            to_host: {
                if (hdr.netfold.isValid()) {
                    hdr.ipv4.dst = meta.host_address;
                }
            }
        }
        if (meta.room == 0 && hdr.ipv4.ecn != 0) {
            hdr.ipv4.ecn = ECN_CE;
            if (hdr.netfold.isValid()) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_CONGESTION;
            }
        }
        if (hdr.netfold.isValid()) {
            hdr.udp.checksum = 0;
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
    }
}
