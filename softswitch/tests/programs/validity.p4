// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Headers that are invalid: reading, writing, copying, comparing them; setValid and setInvalid; stacks by dynamic index.

#include <core.p4>
#include <v1model.p4>

header cmd_t { bit<8> op; bit<8> index; }
header h_t { bit<8> a; bit<24> b; }
header out_t { bit<8> flags; bit<8> a; bit<24> b; bit<8> last; bit<8> picked; }
struct headers_t { out_t o; cmd_t cmd; h_t x; h_t y; h_t[3] s; }
struct metadata_t { }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.cmd);
        transition select(hdr.cmd.op[7:6]) { 0: accept; 1: one; 2: both; 3: stack; }
    }
    state one { pkt.extract(hdr.x); transition accept; }
    state both { pkt.extract(hdr.x); pkt.extract(hdr.y); transition accept; }
    state stack { pkt.extract(hdr.s.next); pkt.extract(hdr.s.next); pkt.extract(hdr.x); transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.o.setValid();
        bit<8> op = hdr.cmd.op & 0x3f;
        if (op == 1) { hdr.y = hdr.x; }
        else if (op == 2) { hdr.x.setInvalid(); hdr.y = hdr.x; }
        else if (op == 3) { hdr.y.a = 0x77; hdr.y.setValid(); hdr.y.b = 0x123456; }
        else if (op == 4) { hdr.x.setInvalid(); hdr.x.setValid(); }
        else if (op == 5) { hdr.s.push_front(2); hdr.s[1].setValid(); hdr.s[1].a = 9; hdr.s[1].b = 10; }
        else if (op == 6) { hdr.s.pop_front(1); }
        else if (op == 7) { hdr.s[2].setValid(); hdr.s[2] = hdr.x; }
        else if (op == 8) { h_t t = hdr.x; hdr.x = hdr.y; hdr.y = t; }
        else if (op == 9) { hdr.y.setValid(); hdr.y = { 1, 2 }; }
        if (hdr.x.isValid()) { hdr.o.flags = hdr.o.flags | 1; hdr.o.a = hdr.x.a; }
        if (hdr.y.isValid()) { hdr.o.flags = hdr.o.flags | 2; hdr.o.b = hdr.y.b; }
        if (hdr.x == hdr.y) { hdr.o.flags = hdr.o.flags | 4; }
        if (hdr.s[0].isValid()) { hdr.o.flags = hdr.o.flags | 8; }
        if (hdr.s[1].isValid()) { hdr.o.flags = hdr.o.flags | 16; }
        if (hdr.s[2].isValid()) { hdr.o.flags = hdr.o.flags | 32; }
        if (hdr.cmd.index < 3 && hdr.s[0].isValid() && hdr.s[1].isValid() && hdr.s[2].isValid()) {
            hdr.o.picked = hdr.s[hdr.cmd.index].a;
            hdr.s[hdr.cmd.index].b = 0xabcdef;
        }
        std.egress_spec = 2;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
