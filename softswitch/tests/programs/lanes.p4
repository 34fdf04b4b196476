// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// LANES int<32> lanes are added, saturating, into registers: the shape that the translator must re-roll into one loop.
// -DTERNARY writes the choice as ?: instead of if/else.

#include <core.p4>
#include <v1model.p4>

#ifndef LANES
#define LANES 32
#endif

#define LANES_16(X, p) \
    X(p##0) X(p##1) X(p##2) X(p##3) X(p##4) X(p##5) X(p##6) X(p##7) \
    X(p##8) X(p##9) X(p##a) X(p##b) X(p##c) X(p##d) X(p##e) X(p##f)
#define LANES_64(X, a, b, c, d) LANES_16(X, a) LANES_16(X, b) LANES_16(X, c) LANES_16(X, d)
#if LANES == 32
#define FOR_EACH_LANE(X) LANES_16(X, 0) LANES_16(X, 1)
#elif LANES == 64
#define FOR_EACH_LANE(X) LANES_64(X, 0, 1, 2, 3)
#else
#define FOR_EACH_LANE(X) \
    LANES_64(X, 0, 1, 2, 3) LANES_64(X, 4, 5, 6, 7) LANES_64(X, 8, 9, a, b) LANES_64(X, c, d, e, f)
#endif

#define SLOTS 64
const int<32> TOP = 32s2147483647;
const int<32> BOTTOM = (int<32>)32w0x80000000;

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header slot_t { bit<16> slot; bit<8> claim; bit<8> overflow; }
#define FIELD(n) int<32> v##n;
header lanes_t { FOR_EACH_LANE(FIELD) }

struct headers_t { ethernet_t ethernet; slot_t slot; lanes_t lanes; }
struct metadata_t { bit<32> index; bit<1> claim; bit<1> overflow; }

parser MyParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x88b5: slot; default: accept; }
    }
    state slot { pkt.extract(hdr.slot); pkt.extract(hdr.lanes); transition accept; }
}

control NoCheck(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
#define REGISTER(n) register<int<32>>(SLOTS) lane_##n;
    FOR_EACH_LANE(REGISTER)

#ifdef TERNARY
#define ADD(n) { \
        int<32> old; \
        lane_##n.read(old, meta.index); \
        int<32> sum = (meta.claim == 1) ? hdr.lanes.v##n : ((old == TOP || old == BOTTOM) ? old : (old |+| hdr.lanes.v##n)); \
        lane_##n.write(meta.index, sum); \
        hdr.lanes.v##n = sum; \
    }
#else
#define ADD(n) { \
        int<32> old; \
        lane_##n.read(old, meta.index); \
        if (meta.claim == 1) { old = hdr.lanes.v##n; } \
        else if (old != TOP && old != BOTTOM) { old = old |+| hdr.lanes.v##n; } \
        lane_##n.write(meta.index, old); \
        hdr.lanes.v##n = old; \
        if (old == TOP || old == BOTTOM) { meta.overflow = 1; } \
    }
#endif
    action add() {
        FOR_EACH_LANE(ADD)
    }

    apply {
        if (hdr.slot.isValid()) {
            meta.index = (bit<32>)hdr.slot.slot;
            meta.claim = hdr.slot.claim[0:0];
            meta.overflow = 0;
            add();
            hdr.slot.overflow = (bit<8>)meta.overflow;
        }
        std.egress_spec = std.ingress_port;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control MyDeparser(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr.ethernet); pkt.emit(hdr.slot); pkt.emit(hdr.lanes); }
}

V1Switch(MyParser(), NoCheck(), MyIngress(), MyEgress(), NoCheck(), MyDeparser()) main;
