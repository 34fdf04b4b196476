// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The last step before the wire: the MAC addresses of the port's one neighbor, the host's IP address in a result, and
// the congestion mark.

control Delivery(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard) {

    action to_switch(mac_t src, mac_t dst) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
    }

    action to_host(mac_t src, mac_t dst, ipv4_t address) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        hdr.ipv4.dst = hdr.netfold.isValid() ? address : hdr.ipv4.dst;
    }

    table neighbors {
        key = { standard.egress_port : exact @name("port"); }
        actions = { to_switch; to_host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    bit<19> threshold;

    action mark_above(bit<19> packets) {
        threshold = packets;
    }

    @brief("The queue depth in packets from which ECN-capable packets are marked; no entry, no marking.")
    table congestion {
        key = { standard.egress_port : exact @name("port"); }
        actions = { mark_above; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        threshold = 0x7FFFF;
        neighbors.apply();
        congestion.apply();
        if (standard.enq_qdepth >= threshold && hdr.ipv4.ecn != 0) {
            hdr.ipv4.ecn = ECN_CE;
            if (hdr.netfold.isValid()) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_CONGESTION;
            }
        }
        if (hdr.netfold.isValid()) {
            hdr.udp.checksum = 0;
        }
    }
}
