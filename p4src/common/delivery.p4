// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The last step before the wire, for every routed packet: the MAC addresses of the port's one neighbor, the host's IP address
// in a result, the ECN mark, and the TTL.

control Delivery(inout EGRESS_HEADERS hdr, inout EGRESS_METADATA meta, in EGRESS_STANDARD standard) {

    ipv4_t  host_address;
    bit<32> threshold;   // of the queue's depth, both in the target's unit: packets, or cells of a traffic manager
    bit<32> depth;
    bit<32> ecn_margin;  // threshold - depth, at least 0

    action to_switch(@format(MAC_ADDRESS) mac_t src, @format(MAC_ADDRESS) mac_t dst) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
    }

    action to_host(@format(MAC_ADDRESS) mac_t src, @format(MAC_ADDRESS) mac_t dst, @format(IPV4_ADDRESS) ipv4_t address) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        host_address = address;
    }

    @id(10)
    table neighbors {
        key = { standard.egress_port : exact @name("port"); }
        actions = { to_switch; to_host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    action set_ecn_threshold(bit<19> depth) {
        threshold = (bit<32>)depth;
    }

    @brief("The queue depth from which ECN-capable packets are marked; no entry, no marking.")
    @id(11)
    table ecn_thresholds {
        key = { standard.egress_port : exact @name("port"); }
        actions = { set_ecn_threshold; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    @hidden action compute_ecn_margin() {
        ecn_margin = threshold |-| depth;
    }

    // A table, so that no compiler puts the expression into the condition below, which a chip cannot evaluate.
    @hidden table queue {
        actions = { compute_ecn_margin; }
        const default_action = compute_ecn_margin();
    }

    apply {
        depth = (bit<32>)standard.enq_qdepth;
        threshold = 0x7FFFF;
        ecn_thresholds.apply();
        queue.apply();
        switch (neighbors.apply().action_run) {
            to_host: {
                if (IS_NETFOLD) {
                    hdr.ipv4.dst = host_address;
                }
            }
        }
        if (ecn_margin == 0 && hdr.ipv4.ecn != 0) {
            hdr.ipv4.ecn = ECN_CE;
            if (IS_NETFOLD) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_CONGESTION;
            }
        }
        if (IS_NETFOLD) {
            hdr.udp.checksum = 0;
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
}
