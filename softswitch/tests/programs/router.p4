// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// An IPv4 router with ECMP by hash, TTL, checksums and MAC rewrite: what most P4 programs do.

#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len; bit<16> id; bit<3> flags; bit<13> frag; bit<8> ttl; bit<8> proto;
    bit<16> sum; bit<32> src; bit<32> dst;
}
header l4_t { bit<16> sport; bit<16> dport; }
struct headers_t { ethernet_t eth; ipv4_t ip; l4_t l4; }
struct metadata_t { bit<16> hash; bit<8> nexthop; bit<16> sport; bit<16> dport; }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x0800: ip; default: accept; } }
    state ip {
        pkt.extract(hdr.ip);
        transition select(hdr.ip.frag, hdr.ip.ihl, hdr.ip.proto) { (0, 5, 6): l4; (0, 5, 17): l4; default: accept; }
    }
    state l4 { pkt.extract(hdr.l4); meta.sport = hdr.l4.sport; meta.dport = hdr.l4.dport; transition accept; }
}
#define IPV4 { hdr.ip.version, hdr.ip.ihl, hdr.ip.tos, hdr.ip.len, hdr.ip.id, hdr.ip.flags, hdr.ip.frag, hdr.ip.ttl, hdr.ip.proto, hdr.ip.src, hdr.ip.dst }
control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { verify_checksum(hdr.ip.isValid() && hdr.ip.ihl == 5, IPV4, hdr.ip.sum, HashAlgorithm.csum16); }
}
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action route(bit<8> nexthop, bit<8> count) {
        hash(meta.hash, HashAlgorithm.crc16, 16w0, { hdr.ip.src, hdr.ip.dst, hdr.ip.proto, meta.sport, meta.dport }, (bit<16>)count);
        meta.nexthop = nexthop + meta.hash[7:0];
        hdr.ip.ttl = hdr.ip.ttl - 1;
    }
    action forward(bit<9> port, bit<48> dst) { std.egress_spec = port; hdr.eth.src = hdr.eth.dst; hdr.eth.dst = dst; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { route; drop; } default_action = drop(); size = 1024; }
    table nexthops { key = { meta.nexthop : exact; } actions = { forward; drop; } default_action = drop(); size = 256; }
    apply {
        if (hdr.ip.isValid() && std.checksum_error == 0 && hdr.ip.ttl > 1) {
            if (routes.apply().hit) { nexthops.apply(); }
        } else {
            drop();
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { update_checksum(hdr.ip.isValid() && hdr.ip.ihl == 5, IPV4, hdr.ip.sum, HashAlgorithm.csum16); }
}
control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
