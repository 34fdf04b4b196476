// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What BMv2's output does not show, or shows by the clock: digests, meters, random, log_msg, assert, value sets, queues, aging.

#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> op; bit<8> a; bit<16> b; bit<48> c; }
header out_t { bit<8> color; bit<8> direct_color; bit<16> rnd; bit<32> enq_qdepth; bit<32> deq_qdepth; bit<32> deq_delta; bit<8> vset; }
struct headers_t { in_t i; out_t o; }
struct seen_t { bit<48> c; bit<8> a; bit<9> port; }
struct metadata_t { bit<8> color; bit<8> direct; bit<8> vset; }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) marked;
    state start { pkt.extract(hdr.i); transition select(hdr.i.b) { marked: is_marked; default: accept; } }
    state is_marked { meta.vset = 1; transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(8, MeterType.packets) packets;
    meter(8, MeterType.bytes) octets;
    direct_meter<bit<8>>(MeterType.packets) each;
    direct_counter(CounterType.packets) hits;
    action mark(bit<9> port) { std.egress_spec = port; each.read(meta.direct); hits.count(); }
    table by_a {
        key = { hdr.i.a : exact; }
        actions = { mark; NoAction; }
        meters = each;
        counters = hits;
        support_timeout = true;
        size = 16;
    }
    apply {
        std.egress_spec = 2;
        by_a.apply();
        if (hdr.i.op == 1) { packets.execute_meter((bit<32>)hdr.i.a, meta.color); }
        if (hdr.i.op == 2) { octets.execute_meter((bit<32>)hdr.i.a, meta.color); }
        if (hdr.i.op == 3) { digest<seen_t>(1, { hdr.i.c, hdr.i.a, std.ingress_port }); }
        if (hdr.i.op == 4) { random(hdr.o.rnd, 16w10, 16w20); }
        if (hdr.i.op == 5) { log_msg("a={} c={} 100%", { hdr.i.a, hdr.i.c }); }
        assert(hdr.i.op != 6);
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        bit<16> rnd = hdr.o.rnd;
        hdr.o.setValid();
        hdr.o.color = meta.color;
        hdr.o.direct_color = meta.direct;
        hdr.o.rnd = rnd;
        hdr.o.enq_qdepth = (bit<32>)std.enq_qdepth;
        hdr.o.deq_qdepth = (bit<32>)std.deq_qdepth;
        hdr.o.deq_delta = std.deq_timedelta;
        hdr.o.vset = meta.vset;
    }
}
control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.o); pkt.emit(hdr.i); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
