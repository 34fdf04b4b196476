// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Registers of several widths, read and written at indexes in and out of range; counters.

#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> op; bit<8> index; bit<80> value; }
header out_t { bit<8> r8; bit<32> r32; bit<48> r48; bit<64> r64; bit<80> r80; bit<32> s32; bit<32> total; }
struct headers_t { in_t i; out_t o; }
struct metadata_t { }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.i); transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<8>>(16) reg8;
    register<bit<32>>(16) reg32;
    register<bit<48>>(16) reg48;
    register<bit<64>>(16) reg64;
    register<bit<80>>(16) reg80;
    register<int<32>>(16) signed32;
    counter(16, CounterType.packets_and_bytes) counted;
    direct_counter(CounterType.packets_and_bytes) hits;
    action hit() { hits.count(); }
    table direct { key = { hdr.i.op : exact; } actions = { hit; NoAction; } counters = hits; size = 16; }

    apply {
        hdr.o.setValid();
        bit<32> i = (bit<32>)hdr.i.index;
        counted.count(i);
        direct.apply();
        if (hdr.i.op == 1) {
            reg8.write(i, hdr.i.value[7:0]);
            reg32.write(i, hdr.i.value[31:0]);
            reg48.write(i, hdr.i.value[47:0]);
            reg64.write(i, hdr.i.value[63:0]);
            reg80.write(i, hdr.i.value);
            signed32.write(i, (int<32>)hdr.i.value[31:0]);
        }
        reg8.read(hdr.o.r8, i);
        reg32.read(hdr.o.r32, i);
        reg48.read(hdr.o.r48, i);
        reg64.read(hdr.o.r64, i);
        reg80.read(hdr.o.r80, i);
        int<32> s;
        signed32.read(s, i);
        hdr.o.s32 = (bit<32>)s;
        if (hdr.i.op == 2) { reg32.write(i, hdr.o.r32 + 1); reg80.write(i, hdr.o.r80 + 80w0x10000000000000000); }
        std.egress_spec = 2;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
