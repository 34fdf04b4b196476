// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Tables of each match kind, priorities, const entries, defaults, hit, miss, action_run, switch, exit and return.

#include <core.p4>
#include <v1model.p4>

header key_t { bit<8> sel; bit<32> ip; bit<16> port; bit<16> low; bit<8> opt; bit<100> wide; bit<4> pad; }
header out_t { bit<8> a; bit<8> b; bit<8> c; bit<16> d; bit<32> e; bit<100> f; bit<4> pad; }
struct headers_t { key_t key; out_t o; }
struct metadata_t { bit<8> step; }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.key); transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set_a(bit<8> v) { hdr.o.a = v; }
    action set_b(bit<8> v) { hdr.o.b = v; }
    action set_c(bit<8> v, bit<16> w) { hdr.o.c = v; hdr.o.d = w; }
    action set_f(bit<100> v) { hdr.o.f = v ^ hdr.key.wide; }
    action leave() { hdr.o.e = 0xdead; exit; }
    action nothing() {}

    table exact_t { key = { hdr.key.sel : exact; hdr.key.wide : exact; } actions = { set_a; set_f; nothing; }
        default_action = set_a(0xaa); size = 64; }
    table lpm_t { key = { hdr.key.ip : lpm; } actions = { set_b; nothing; } default_action = nothing(); size = 64; }
    table lpm_exact_t { key = { hdr.key.sel : exact; hdr.key.ip : lpm; } actions = { set_c; nothing; } size = 64; }
    table ternary_t { key = { hdr.key.ip : ternary; hdr.key.port : ternary; hdr.key.opt : optional; }
        actions = { set_a; set_b; leave; } size = 64; }
    table range_t { key = { hdr.key.low : range; hdr.key.sel : ternary; } actions = { set_a; set_c; } size = 64; }
    table const_t {
        key = { hdr.key.port : ternary; hdr.key.sel : exact; }
        actions = { set_a; set_b; nothing; }
        const entries = {
            (0x0001 &&& 0x000f, 1) : set_b(1);
            (0x0000 &&& 0x0008, 1) : set_b(2);
            (_, 1) : set_b(3);
            (_, 2) : set_a(4);
        }
        default_action = nothing();
    }
    table valid_t { key = { hdr.o.isValid() : exact; hdr.key.sel[3:0] : exact; } actions = { set_b; nothing; } size = 64; }

    apply {
        hdr.o.setValid();
        std.egress_spec = 2;
        if (exact_t.apply().hit) { hdr.o.e = hdr.o.e + 1; } else { hdr.o.e = hdr.o.e + 0x100; }
        lpm_t.apply();
        switch (lpm_exact_t.apply().action_run) {
            set_c: { hdr.o.e = hdr.o.e + 2; }
            nothing: { hdr.o.e = hdr.o.e + 4; }
            default: { hdr.o.e = hdr.o.e + 8; }
        }
        if (!ternary_t.apply().hit) { hdr.o.e = hdr.o.e | 0x10000; }
        range_t.apply();
        if (const_t.apply().miss) { hdr.o.e = hdr.o.e | 0x20000; }
        valid_t.apply();
        if (hdr.key.sel == 7) { return; }
        hdr.o.e = hdr.o.e | 0x80000000;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.o); pkt.emit(hdr.key); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
