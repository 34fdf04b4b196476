// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// A header of more than 128 bytes that some frames have: what is read of it where it is not, and in copies.

#include <core.p4>
#include <v1model.p4>

header cmd_t { bit<8> op; bit<8> at_ingress; bit<8> at_egress; bit<8> rid; }
header big_t { bit<8> first; bit<1024> middle; bit<8> last; }
struct headers_t { cmd_t cmd; big_t big; }
struct metadata_t { }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.cmd);
        transition select(hdr.cmd.op[0:0]) { 1: big; default: accept; }
    }
    state big { pkt.extract(hdr.big); transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.cmd.op[1:1] == 1) { hdr.big.last = 7; }
        if (hdr.cmd.op[2:2] == 1) { hdr.big.setInvalid(); }
        hdr.cmd.at_ingress = hdr.big.last;
        if (hdr.cmd.op[3:3] == 1) { std.mcast_grp = 1; }
        if (hdr.cmd.op[4:4] == 1) { hdr.big.setValid(); }
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.cmd.rid = (bit<8>)std.egress_rid;
        if (hdr.cmd.op[5:5] == 1 && std.egress_rid == 1) { hdr.big.last = 9; }
        hdr.cmd.at_egress = hdr.big.last;
    }
}
control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.cmd); pkt.emit(hdr.big); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
