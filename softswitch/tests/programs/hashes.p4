// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Each hash algorithm over odd inputs, and checksums with conditions and payload.

#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> flags; bit<13> a; bit<3> b; bit<32> c; bit<48> d; bit<72> e; }
header out_t {
    bit<16> crc16; bit<32> crc32; bit<16> csum16; bit<16> xor16; bit<64> identity; bit<32> crc32c; bit<16> crc16c;
    bit<16> ranged; bit<16> paid; bit<16> check; bit<8> bad;
}
header extra_t { bit<16> x; }
struct headers_t { in_t i; extra_t extra; out_t o; }
struct metadata_t { bit<16> m; bit<16> x; }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.i);
        meta.m = 0x1234;
        transition select(hdr.i.flags[0:0]) { 1: extra; default: accept; }
    }
    state extra { pkt.extract(hdr.extra); meta.x = hdr.extra.x; transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { verify_checksum_with_payload(hdr.extra.isValid(), { hdr.i.flags, hdr.i.c }, hdr.extra.x, HashAlgorithm.csum16); }
}

#define ALL { hdr.i.a, hdr.i.b, hdr.i.c, hdr.i.d, hdr.i.e, meta.m, 8w0x5a, meta.x }
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.o.setValid();
        hash(hdr.o.crc16, HashAlgorithm.crc16, 16w0, ALL, 32w0x10000);
        hash(hdr.o.crc32, HashAlgorithm.crc32, 32w0, ALL, 64w0x100000000);
        hash(hdr.o.csum16, HashAlgorithm.csum16, 16w0, ALL, 32w0x10000);
        hash(hdr.o.xor16, HashAlgorithm.xor16, 16w0, ALL, 32w0x10000);
        hash(hdr.o.identity, HashAlgorithm.identity, 64w0, { hdr.i.c, hdr.i.a }, 64w0xffffffffffffffff);
        hash(hdr.o.crc32c, HashAlgorithm.crc32_custom, 32w0, { hdr.i.d, hdr.i.b, hdr.i.a }, 64w0x100000000);
        hash(hdr.o.crc16c, HashAlgorithm.crc16_custom, 16w0, { hdr.i.e }, 32w0x10000);
        hash(hdr.o.ranged, HashAlgorithm.crc32, 16w100, { hdr.i.c }, 16w37);
        hdr.o.bad = (bit<8>)std.checksum_error;
        std.egress_spec = 2;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.i.flags[1:1] == 1, { hdr.i.a, hdr.i.b, hdr.i.c, hdr.i.d }, hdr.o.check, HashAlgorithm.csum16);
        update_checksum_with_payload(true, { hdr.i.c, hdr.i.flags }, hdr.o.paid, HashAlgorithm.csum16);
    }
}
control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.o); pkt.emit(hdr.i); pkt.emit(hdr.extra); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
