// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// A wire between ports 1 and 2, without a table: what comes in on one leaves by the other. Frames of type 0x88b7 are
// stamped with what the traffic manager says of them; frames of type 0x88b8 go to the CPU port; those that come from the
// CPU port leave by port 1.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header stamp_t {
    bit<32> enq_qdepth;
    bit<32> deq_qdepth;
    bit<32> deq_timedelta;
}

struct headers_t {
    ethernet_t ethernet;
    stamp_t    stamp;
}

struct metadata_t {}

parser WireParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x88b7: parse_stamp;
            default: accept;
        }
    }
    state parse_stamp {
        packet.extract(hdr.stamp);
        transition accept;
    }
}

control WireVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }

control WireIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.ethernet.type == 0x88b8) {
            std.egress_spec = 510;
        } else if (std.ingress_port == 1) {
            std.egress_spec = 2;
        } else {
            std.egress_spec = 1;
        }
    }
}

control WireEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.stamp.isValid()) {
            hdr.stamp.enq_qdepth = (bit<32>)std.enq_qdepth;
            hdr.stamp.deq_qdepth = (bit<32>)std.deq_qdepth;
            hdr.stamp.deq_timedelta = std.deq_timedelta;
        }
    }
}

control WireCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control WireDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.stamp);
    }
}

@pkginfo(name="softswitch-test-wire", version="1")
V1Switch(WireParser(), WireVerify(), WireIngress(), WireEgress(), WireCompute(), WireDeparser()) main;
