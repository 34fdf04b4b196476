// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Action profiles and selectors.

#include <core.p4>
#include <v1model.p4>

header key_t { bit<8> group; bit<32> src; bit<32> dst; bit<16> sport; bit<8> chosen; bit<8> plain; }
struct headers_t { key_t key; }
struct metadata_t { }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.key); transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc16, 64, 14) selector;
    action_profile(64) profile;
    action choose(bit<8> v) { hdr.key.chosen = v; }
    action plain(bit<8> v) { hdr.key.plain = v; }
    table by_hash {
        key = { hdr.key.group : exact; hdr.key.src : selector; hdr.key.dst : selector; hdr.key.sport : selector; }
        actions = { choose; NoAction; }
        default_action = NoAction();
        implementation = selector;
        size = 64;
    }
    table by_member {
        key = { hdr.key.group : exact; }
        actions = { plain; NoAction; }
        implementation = profile;
        size = 64;
    }
    apply {
        by_hash.apply();
        by_member.apply();
        std.egress_spec = 2;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
