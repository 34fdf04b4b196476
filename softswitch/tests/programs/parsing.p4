// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Parser: select with masks and ranges, lookahead, advance, varbit, stacks, unions, verify, errors, checksums on the way.

#include <core.p4>
#include <v1model.p4>

header kind_t { bit<8> kind; }
header fixed_t { bit<12> x; bit<4> y; bit<16> z; }
header opt_t { bit<4> n; bit<4> pad; varbit<120> data; bit<8> after; }
header item_t { bit<7> value; bit<1> last; }
header u8_t { bit<8> tag; bit<8> v; }
header u16_t { bit<8> tag; bit<16> v; }
header u32_t { bit<8> tag; bit<32> v; }
header_union u_t { u8_t a; u16_t b; u32_t c; }
header report_t { bit<32> error_code; bit<32> peeked; bit<8> next; bit<8> which; bit<32> sum; bit<16> length; bit<8> checksum; }

struct headers_t { report_t report; kind_t kind; fixed_t fixed; opt_t opt; item_t[4] items; u_t u; u_t[2] us; fixed_t tail; }
struct metadata_t { bit<32> peeked; bit<8> which; }
error { Odd, Refused }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            0: accept;
            1: fixed;
            2: options;
            3: items;
            4: unions;
            5: jump;
            0x10 &&& 0xf0: fixed;
            0x20..0x2f: peek;
            0x30 .. 0x35: verified;
            default: other;
        }
    }
    state fixed {
        pkt.extract(hdr.fixed);
        transition select(hdr.fixed.x, hdr.fixed.y) {
            (0x123, 4): accept;
            (_, 0x8 &&& 0x8): tail;
            (0x000 .. 0x0ff, 1): refused;
            default: accept;
        }
    }
    state refused { verify(false, error.Refused); transition accept; }
    state tail { meta.which = 9; pkt.extract(hdr.tail); transition accept; }
    state options {
        bit<8> head = pkt.lookahead<bit<8>>();
        pkt.extract(hdr.opt, (bit<32>)(head[7:4]) * 8);
        transition tail;
    }
    state items {
        pkt.extract(hdr.items.next);
        transition select(hdr.items.last.last) { 1: accept; default: items; }
    }
    state unions {
        bit<8> tag = pkt.lookahead<bit<8>>();
        transition select(tag) { 1: ua; 2: ub; 3: uc; 4: us_a; 5: us_b; default: accept; }
    }
    state ua { pkt.extract(hdr.u.a); transition unions; }
    state ub { pkt.extract(hdr.u.b); transition unions; }
    state uc { pkt.extract(hdr.u.c); transition unions; }
    state us_a { pkt.extract(hdr.us.next.a); transition unions; }
    state us_b { pkt.extract(hdr.us.next.b); transition unions; }
    state jump {
        bit<32> ahead = pkt.lookahead<bit<32>>();
        meta.peeked = ahead;
        pkt.advance((bit<32>)ahead[31:28] * 8);
        transition tail;
    }
    state peek {
        meta.peeked = (bit<32>)pkt.lookahead<bit<12>>();
        meta.which = 1;
        transition select(pkt.lookahead<bit<16>>()) { 0x0000 &&& 0x8000: fixed; default: accept; }
    }
    state verified {
        verify(hdr.kind.kind != 0x33, error.Odd);
        meta.which = 7;
        transition fixed;
    }
    state other { meta.which = 0xee; transition select(hdr.kind.kind[0:0]) { 1: fixed; } }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { verify_checksum(hdr.fixed.isValid(), { hdr.fixed.x, hdr.fixed.y }, hdr.fixed.z, HashAlgorithm.csum16); }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.report.setValid();
        hdr.report.error_code = 0;
        if (std.parser_error == error.NoError) { hdr.report.error_code = 1; }
        else if (std.parser_error == error.PacketTooShort) { hdr.report.error_code = 2; }
        else if (std.parser_error == error.StackOutOfBounds) { hdr.report.error_code = 3; }
        else if (std.parser_error == error.HeaderTooShort) { hdr.report.error_code = 4; }
        else if (std.parser_error == error.ParserInvalidArgument) { hdr.report.error_code = 5; }
        else if (std.parser_error == error.NoMatch) { hdr.report.error_code = 6; }
        else if (std.parser_error == error.Odd) { hdr.report.error_code = 7; }
        else if (std.parser_error == error.Refused) { hdr.report.error_code = 8; }
        hdr.report.peeked = meta.peeked;
        hdr.report.which = meta.which;
        hdr.report.length = (bit<16>)std.packet_length;
        hdr.report.checksum = (bit<8>)std.checksum_error;
        bit<8> flags = 0;
        if (hdr.items[0].isValid()) { flags = flags | 1; hdr.report.sum = hdr.report.sum + (bit<32>)hdr.items[0].value; }
        if (hdr.items[1].isValid()) { flags = flags | 2; hdr.report.sum = hdr.report.sum + (bit<32>)hdr.items[1].value; }
        if (hdr.items[2].isValid()) { flags = flags | 4; hdr.report.sum = hdr.report.sum + (bit<32>)hdr.items[2].value; }
        if (hdr.items[3].isValid()) { flags = flags | 8; hdr.report.sum = hdr.report.sum + (bit<32>)hdr.items[3].value; }
        if (hdr.u.a.isValid()) { flags = flags | 16; hdr.u.a.v = hdr.u.a.v + 1; }
        if (hdr.u.b.isValid()) { flags = flags | 32; hdr.u.b.v = hdr.u.b.v + 1; }
        if (hdr.u.c.isValid()) { flags = flags | 64; }
        if (hdr.kind.kind == 3) {
            if (hdr.items[0].value[0:0] == 1) { hdr.items.push_front(1); hdr.items[0].setValid(); hdr.items[0].value = 0x55; }
            else { hdr.items.pop_front(1); }
        }
        if (hdr.kind.kind == 4 && hdr.u.b.isValid()) { hdr.u.c.setValid(); hdr.u.c.tag = 0x77; hdr.u.c.v = 5; }
        hdr.report.next = flags;
        std.egress_spec = 3;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.tail.isValid(), { hdr.tail.x, hdr.tail.y, 16w0xbeef }, hdr.tail.z, HashAlgorithm.csum16);
    }
}
control MyDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.report); pkt.emit(hdr.kind); pkt.emit(hdr.fixed); pkt.emit(hdr.opt); pkt.emit(hdr.items);
        pkt.emit(hdr.u); pkt.emit(hdr.us); pkt.emit(hdr.tail);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
