// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Clones of both kinds with field lists, resubmit, recirculate, multicast, truncate, drop, and which of them wins.

#include <core.p4>
#include <v1model.p4>

header cmd_t { bit<8> op; bit<8> egress_op; bit<16> port; bit<16> group; bit<8> seen; bit<8> passes; }
header log_t { bit<32> instance; bit<16> rid; bit<16> ingress; bit<16> egress; bit<32> length; bit<8> kept; bit<8> lost; bit<16> spec; }
struct headers_t { log_t log; cmd_t cmd; }
struct metadata_t { @field_list(1, 2) bit<8> kept; bit<8> lost; @field_list(2) bit<8> round; }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.cmd); transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        meta.kept = meta.kept + 3;
        meta.lost = meta.lost + 5;
        hdr.cmd.passes = hdr.cmd.passes + 1;
        hdr.cmd.seen = hdr.cmd.seen | 1;
        std.egress_spec = (bit<9>)hdr.cmd.port;
        if (hdr.cmd.op[0:0] == 1) { std.mcast_grp = hdr.cmd.group; }
        if (hdr.cmd.op[1:1] == 1) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
        if (hdr.cmd.op[2:2] == 1 && meta.round == 0) { meta.round = 1; resubmit_preserving_field_list(2); }
        if (hdr.cmd.op[3:3] == 1) { mark_to_drop(std); }
        if (hdr.cmd.op[4:4] == 1) { truncate(32w22); }
        if (hdr.cmd.op[5:5] == 1) { std.egress_spec = 4; }
        if (hdr.cmd.op[6:6] == 1) { clone(CloneType.I2E, 9); }
        if (hdr.cmd.op[7:7] == 1) { hdr.cmd.seen = 0x80 | hdr.cmd.seen; clone(CloneType.I2E, 77); }
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.log.setValid();
        hdr.log.instance = std.instance_type;
        hdr.log.rid = std.egress_rid;
        hdr.log.ingress = (bit<16>)std.ingress_port;
        hdr.log.egress = (bit<16>)std.egress_port;
        hdr.log.length = std.packet_length;
        hdr.log.kept = meta.kept;
        hdr.log.lost = meta.lost;
        hdr.log.spec = (bit<16>)std.egress_spec;
        hdr.cmd.seen = hdr.cmd.seen | 2;
        if (hdr.cmd.egress_op[0:0] == 1 && std.instance_type == 0) { clone_preserving_field_list(CloneType.E2E, 6, 1); }
        if (hdr.cmd.egress_op[1:1] == 1 && std.egress_rid == 2) { mark_to_drop(std); }
        if (hdr.cmd.egress_op[2:2] == 1 && hdr.cmd.passes < 3) { hdr.log.setInvalid(); recirculate_preserving_field_list(2); }
        if (hdr.cmd.egress_op[3:3] == 1) { truncate(32w20); }
        if (hdr.cmd.egress_op[4:4] == 1 && std.egress_port == 3) { mark_to_drop(std); }
        if (hdr.cmd.egress_op[5:5] == 1) { hdr.cmd.setInvalid(); }
    }
}
control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.log); pkt.emit(hdr.cmd); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
