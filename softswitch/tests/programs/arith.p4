// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Arithmetic of every kind and of odd widths: operands a and b of each width come in, results go out.

#include <core.p4>
#include <v1model.p4>

#ifdef WIDE
#define WIDTHS(X) X(520)
#define A64 hdr.i.a520[99:36]
#define A16 hdr.i.a520[515:500]
#define B32 hdr.i.b520[31:0]
#else
#define WIDTHS(X) X(8) X(16) X(32) X(48) X(64) X(72) X(128)
#define A64 hdr.i.a64
#define A16 hdr.i.a16
#define B32 hdr.i.b32
#endif

#define IN(w) bit<w> a##w; bit<w> b##w;
header in_t { WIDTHS(IN) bit<8> by; bit<3> p3; bit<5> q5; bit<1> f1; bit<7> g7; bit<33> p33; bit<31> q31; }

#define OUT(w) bit<w> add##w; bit<w> sub##w; bit<w> mul##w; bit<w> uadd##w; bit<w> usub##w; bit<w> sadd##w; bit<w> ssub##w; \
    bit<w> and##w; bit<w> or##w; bit<w> xor##w; bit<w> neg##w; bit<w> inv##w; bit<w> shl##w; bit<w> shr##w; bit<w> sar##w; \
    bit<w> mix##w; bit<8> cmp##w;
header out_t { WIDTHS(OUT) }
header odd_t {
    bit<3> add3; bit<5> sub5; bit<8> cat; bit<33> add33; bit<31> mul31; bit<16> part; bit<64> widen; bit<64> sign;
    bit<12> slice; bit<4> low; bit<64> fold;
}
struct headers_t { in_t i; out_t o; odd_t odd; }
struct metadata_t { bit<2048> huge; }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.i); pkt.extract(hdr.o); pkt.extract(hdr.odd); transition accept; }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
#define DO(w) action do##w() { \
        hdr.o.add##w = hdr.i.a##w + hdr.i.b##w; \
        hdr.o.sub##w = hdr.i.a##w - hdr.i.b##w; \
        hdr.o.mul##w = hdr.i.a##w * hdr.i.b##w; \
        hdr.o.uadd##w = hdr.i.a##w |+| hdr.i.b##w; \
        hdr.o.usub##w = hdr.i.a##w |-| hdr.i.b##w; \
        hdr.o.sadd##w = (bit<w>)((int<w>)hdr.i.a##w |+| (int<w>)hdr.i.b##w); \
        hdr.o.ssub##w = (bit<w>)((int<w>)hdr.i.a##w |-| (int<w>)hdr.i.b##w); \
        hdr.o.and##w = hdr.i.a##w & hdr.i.b##w; \
        hdr.o.or##w = hdr.i.a##w | hdr.i.b##w; \
        hdr.o.xor##w = hdr.i.a##w ^ hdr.i.b##w; \
        hdr.o.neg##w = -hdr.i.a##w; \
        hdr.o.inv##w = ~hdr.i.a##w; \
        hdr.o.shl##w = hdr.i.a##w << hdr.i.by; \
        hdr.o.shr##w = hdr.i.a##w >> hdr.i.by; \
        hdr.o.sar##w = (bit<w>)((int<w>)hdr.i.a##w >> hdr.i.by); \
        hdr.o.mix##w = hdr.i.a##w == hdr.i.b##w ? (hdr.i.a##w ^ (hdr.i.b##w << 3)) : (hdr.i.a##w - 5 + (hdr.i.b##w & 0x5a)); \
        bit<8> c = 0; \
        if (hdr.i.a##w < hdr.i.b##w) { c = c | 1; } \
        if (hdr.i.a##w <= hdr.i.b##w) { c = c | 2; } \
        if ((int<w>)hdr.i.a##w > (int<w>)hdr.i.b##w) { c = c | 4; } else if (hdr.i.a##w != hdr.i.b##w) { c = c + 128; } \
        if ((int<w>)hdr.i.a##w >= 0) { c = c | 8; } \
        hdr.o.cmp##w = c; \
    }
    WIDTHS(DO)

    action odd() {
        hdr.odd.add3 = hdr.i.p3 + 3;
        hdr.odd.sub5 = hdr.i.q5 |-| 7;
        hdr.odd.cat = hdr.i.f1 ++ hdr.i.g7;
        hdr.odd.add33 = hdr.i.p33 + 33w0x1ffffffff;
        hdr.odd.mul31 = hdr.i.q31 * 31w12345;
        hdr.odd.part = A64[40:25];
        hdr.odd.widen = (bit<64>)A16 + (bit<64>)B32;
        hdr.odd.sign = (bit<64>)(int<64>)(int<16>)A16;
        hdr.odd.slice = A64[33:22];
        hdr.odd.low = (bit<4>)B32;
        meta.huge = ((bit<2048>)A64 << hdr.i.by) * ((bit<2048>)B32 + 2048w1);
    }
    // In steps: p4c would put one expression into the other.
    action square() { meta.huge = meta.huge * (meta.huge |+| ((bit<2048>)A64 << 250)) - 1; }
    action fold() { meta.huge = meta.huge ^ (meta.huge >> 250); }
    action finish() {
        hdr.odd.fold = meta.huge[127:64] + (meta.huge < 2048w0x1000 ? 64w1 : 64w2);
    }

#define CALL(w) do##w();
    apply {
        WIDTHS(CALL)
        odd();
        square();
        square();
        fold();
        square();
        fold();
        finish();
        std.egress_spec = 2;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyDeparser(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
