// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Which part of FPISA (Yuan et al., NSDI 2022) fits into a Tofino: a program that only adds VALUES floats of a packet to those of
// a slot, for the compiler's answer (docs/how-to/tofino.md, section 9). It is no part of netfold.
//
//   p4c-barefoot --target tofino --arch tna -DVALUES=1 fpisa.p4
//
// FPISA-A, the form for an unmodified switch: exponent and signed significand are in separate registers; a value with a smaller
// exponent is shifted right before it is added; one with a larger exponent is shifted left, up to 7 bits, beyond which it
// overwrites the sum; the sum that leaves is normalized by a table on its leading bits. Two options:
//
//   -DSHIFT_BY_A_FIELD   in place of a table with an action for each distance
//   -DSHIFT_THE_SUM      in the register, where the paper's own form has it (read, shift, add, write)

#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

#ifndef VALUES
#define VALUES 1
#endif

#if VALUES == 1
#define FOR_EACH(X) X(0)
#elif VALUES == 2
#define FOR_EACH(X) X(0) X(1)
#elif VALUES == 3
#define FOR_EACH(X) X(0) X(1) X(2)
#elif VALUES == 4
#define FOR_EACH(X) X(0) X(1) X(2) X(3)
#elif VALUES == 8
#define FOR_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#endif

const bit<32> SLOTS = 4096;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

#define FIELDS(n) bit<32> value##n;
header floats_t {
    bit<16> slot;
    FOR_EACH(FIELDS)
}

#define WORK(n) bit<32> bits##n; bit<8> exponent##n;  bit<8> distance##n; bit<8> ahead##n; bit<8> kept##n; bit<1> minus##n;
struct metadata_t {
    FOR_EACH(WORK)
}

struct headers_t {
    ethernet_t ethernet;
    floats_t   floats;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t standard) {
    state start {
        packet.extract(standard);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.floats);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t standard,
    in ingress_intrinsic_metadata_from_parser_t from_parser, inout ingress_intrinsic_metadata_for_deparser_t to_deparser,
    inout ingress_intrinsic_metadata_for_tm_t to_tm) {

#define RIGHT(n, d) action right_##n##_##d() { meta.bits##n = meta.bits##n >> d; }
#define LEFT(n, d)  action left_##n##_##d() { meta.bits##n = meta.bits##n << d; }
#define SIGNED_RIGHT(n, d) action right_##n##_##d() { meta.bits##n = (bit<32>)((int<32>)meta.bits##n >> d); }
#define UP(n, d)   action up_##n##_##d() { meta.bits##n = meta.bits##n << d; meta.kept##n = meta.kept##n - d; }
#define DOWN(n, d) action down_##n##_##d() { meta.bits##n = meta.bits##n >> d; meta.kept##n = meta.kept##n + d; }
#define DISTANCES(X, n) X(n, 1) X(n, 2) X(n, 3) X(n, 4) X(n, 5) X(n, 6) X(n, 7) X(n, 8) X(n, 9) X(n, 10) X(n, 11) X(n, 12) \
    X(n, 13) X(n, 14) X(n, 15) X(n, 16) X(n, 17) X(n, 18) X(n, 19) X(n, 20) X(n, 21) X(n, 22) X(n, 23)
#define FEW(X, n) X(n, 1) X(n, 2) X(n, 3) X(n, 4) X(n, 5) X(n, 6) X(n, 7)

#ifdef SHIFT_BY_A_FIELD
#define ALIGN(n) action align_##n() { meta.bits##n = meta.bits##n >> meta.distance##n; }
#define ALIGN_APPLY(n) align_##n();
#else
#define ALIGN(n) \
    DISTANCES(SIGNED_RIGHT, n) FEW(LEFT, n) \
    action none_##n() { meta.bits##n = 0; } \
    table align_##n { \
        key = { meta.ahead##n : exact; meta.distance##n : exact; } \
        actions = { NoAction; none_##n; \
            right_##n##_1; right_##n##_2; right_##n##_3; right_##n##_4; right_##n##_5; right_##n##_6; right_##n##_7; \
            right_##n##_8; right_##n##_9; right_##n##_10; right_##n##_11; right_##n##_12; right_##n##_13; right_##n##_14; \
            right_##n##_15; right_##n##_16; right_##n##_17; right_##n##_18; right_##n##_19; right_##n##_20; right_##n##_21; \
            right_##n##_22; right_##n##_23; \
            left_##n##_1; left_##n##_2; left_##n##_3; left_##n##_4; left_##n##_5; left_##n##_6; left_##n##_7; } \
        const entries = { \
            (0, 0) : NoAction(); \
            (0, 1) : right_##n##_1(); (0, 2) : right_##n##_2(); (0, 3) : right_##n##_3(); (0, 4) : right_##n##_4(); \
            (0, 5) : right_##n##_5(); (0, 6) : right_##n##_6(); (0, 7) : right_##n##_7(); (0, 8) : right_##n##_8(); \
            (0, 9) : right_##n##_9(); (0, 10) : right_##n##_10(); (0, 11) : right_##n##_11(); (0, 12) : right_##n##_12(); \
            (0, 13) : right_##n##_13(); (0, 14) : right_##n##_14(); (0, 15) : right_##n##_15(); (0, 16) : right_##n##_16(); \
            (0, 17) : right_##n##_17(); (0, 18) : right_##n##_18(); (0, 19) : right_##n##_19(); (0, 20) : right_##n##_20(); \
            (0, 21) : right_##n##_21(); (0, 22) : right_##n##_22(); (0, 23) : right_##n##_23(); \
            (1, 0) : left_##n##_1(); (2, 0) : left_##n##_2(); (3, 0) : left_##n##_3(); (4, 0) : left_##n##_4(); \
            (5, 0) : left_##n##_5(); (6, 0) : left_##n##_6(); (7, 0) : left_##n##_7(); \
        } \
        const default_action = none_##n(); \
        size = 64; \
    }
#define ALIGN_APPLY(n) align_##n.apply();
#endif

#ifdef SHIFT_THE_SUM
#define ADD_TO(held, n) held = (held >> meta.distance##n) + (int<32>)meta.bits##n
#else
#define ADD_TO(held, n) held = held + (int<32>)meta.bits##n
#endif

#define VALUE(n) \
    Register<bit<8>, bit<16>>(SLOTS, 0) exponents_##n; \
    RegisterAction<bit<8>, bit<16>, bit<8>>(exponents_##n) compare_##n = { \
        void apply(inout bit<8> held, out bit<8> before) { \
            before = held; \
            if (meta.exponent##n > held) { held = meta.exponent##n; } \
        } \
    }; \
    Register<int<32>, bit<16>>(SLOTS, 0) sums_##n; \
    RegisterAction<int<32>, bit<16>, bit<32>>(sums_##n) add_##n = { \
        void apply(inout int<32> held, out bit<32> sum) { ADD_TO(held, n); sum = (bit<32>)held; } \
    }; \
    action unpack_##n() { \
        meta.bits##n = 8w0 ++ 1w1 ++ hdr.floats.value##n[22:0]; \
        meta.exponent##n = hdr.floats.value##n[30:23]; \
    } \
    action look_##n() { meta.kept##n = compare_##n.execute(hdr.floats.slot); } \
    action negate_##n() { meta.bits##n = 0 - meta.bits##n; } \
    action apart_##n() { \
        meta.distance##n = meta.kept##n |-| meta.exponent##n; \
        meta.ahead##n = meta.exponent##n |-| meta.kept##n; \
    } \
    action keep_larger_##n() { meta.kept##n = meta.kept##n + meta.ahead##n; } \
    action sum_##n() { meta.bits##n = add_##n.execute(hdr.floats.slot); } \
    action absolute_##n() { meta.bits##n = 0 - meta.bits##n; meta.minus##n = 1; } \
    ALIGN(n) \
    DISTANCES(UP, n) FEW(DOWN, n) \
    table normalize_##n { \
        key = { meta.bits##n : ternary; } \
        actions = { NoAction; \
            up_##n##_1; up_##n##_2; up_##n##_3; up_##n##_4; up_##n##_5; up_##n##_6; up_##n##_7; up_##n##_8; up_##n##_9; \
            up_##n##_10; up_##n##_11; up_##n##_12; up_##n##_13; up_##n##_14; up_##n##_15; up_##n##_16; up_##n##_17; up_##n##_18; \
            up_##n##_19; up_##n##_20; up_##n##_21; up_##n##_22; up_##n##_23; \
            down_##n##_1; down_##n##_2; down_##n##_3; down_##n##_4; down_##n##_5; down_##n##_6; down_##n##_7; } \
        size = 64; \
    } \
    action pack_fraction_##n() { hdr.floats.value##n[22:0] = meta.bits##n[22:0]; } \
    action pack_exponent_##n() { hdr.floats.value##n[30:23] = meta.kept##n; } \
    action pack_sign_##n() { hdr.floats.value##n[31:31] = meta.minus##n; }
    FOR_EACH(VALUE)

#define VALUE_APPLY(n) \
        unpack_##n(); \
        look_##n(); \
        if (hdr.floats.value##n[31:31] == 1) { negate_##n(); } \
        apart_##n(); \
        keep_larger_##n(); \
        ALIGN_APPLY(n) \
        sum_##n(); \
        if (meta.bits##n[31:31] == 1) { absolute_##n(); } \
        normalize_##n.apply(); \
        pack_fraction_##n(); \
        pack_exponent_##n(); \
        pack_sign_##n();

    apply {
        FOR_EACH(VALUE_APPLY)
        to_tm.ucast_egress_port = standard.ingress_port;
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t to_deparser) {
    apply {
        packet.emit(hdr);
    }
}

struct nothing_t {}

parser EgressParser(packet_in packet, out nothing_t hdr, out nothing_t meta, out egress_intrinsic_metadata_t standard) {
    state start {
        packet.extract(standard);
        transition accept;
    }
}

control Egress(inout nothing_t hdr, inout nothing_t meta, in egress_intrinsic_metadata_t standard,
    in egress_intrinsic_metadata_from_parser_t from_parser, inout egress_intrinsic_metadata_for_deparser_t to_deparser,
    inout egress_intrinsic_metadata_for_output_port_t to_port) {
    apply {}
}

control EgressDeparser(packet_out packet, inout nothing_t hdr, in nothing_t meta,
    in egress_intrinsic_metadata_for_deparser_t to_deparser) {
    apply {}
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;
