// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// One of each kind of entity that P4Runtime can speak of, for the tests of the server. What it does to packets:
//   packet-out goes to the port that its header names; everything else is forwarded by `forward` (destination MAC),
//   unknown destinations go to the CPU port as packet-ins; the low bits of the source MAC count and mark.

#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9>  ingress_port;
    bit<7>  reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9>  egress_port;
    @padding bit<7> unused;
}

header tagged_t {
    bit<16> tag;
    bit<8>  low;
    bit<8>  choice;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    tagged_t     tagged;
}

struct seen_t {
    bit<48> src;
    bit<9>  port;
}

struct metadata_t {
    bit<16> hash;
    bit<2>  color;
}

parser KindsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) tagged_types;

    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            tagged_types: parse_tagged;
            default: accept;
        }
    }
    state parse_tagged {
        packet.extract(hdr.tagged);
        transition accept;
    }
}

control KindsVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }

control KindsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) forward_counter;
    direct_meter<bit<2>>(MeterType.bytes) police_meter;
    counter(16, CounterType.packets_and_bytes) ports;
    meter(8, MeterType.packets) rates;
    register<bit<32>>(64) totals;
    register<int<16>>(8) signed_totals;
    action_selector(HashAlgorithm.crc16, 32, 8) spread;
    action_profile(8) kept;

    action drop() { mark_to_drop(std); }
    action send(bit<9> port) {
        forward_counter.count();
        std.egress_spec = port;
    }
    action group(bit<16> id) {
        forward_counter.count();
        std.mcast_grp = id;
    }
    action to_controller(bit<7> reason) {
        forward_counter.count();
        std.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.reason = reason;
    }
    table forward {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; group; to_controller; @defaultonly drop; }
        counters = forward_counter;
        default_action = to_controller(1);
        size = 64;
        support_timeout = true;
    }

    action police() { police_meter.read(meta.color); }
    action mirror(bit<16> session) { clone(CloneType.I2E, (bit<32>)session); }
    table police_table {
        key = {
            std.ingress_port: ternary;
            hdr.ethernet.type: range;
            hdr.ethernet.src: optional;
        }
        actions = { police; mirror; NoAction; }
        meters = police_meter;
        size = 16;
    }

    action set_port(bit<9> port) { std.egress_spec = port; }
    action ignore() {}
    table routes {
        key = {
            hdr.tagged.tag: lpm;
            hdr.tagged.choice: selector;
        }
        actions = { set_port; ignore; }
        implementation = spread;
        size = 16;
    }
    table kept_routes {
        key = { hdr.tagged.low: exact; }
        actions = { set_port; ignore; }
        implementation = kept;
        size = 16;
    }

    action learn() { digest<seen_t>(1, { hdr.ethernet.src, std.ingress_port }); }
    action measure(bit<32> index) {
        bit<32> total;
        totals.read(total, index);
        totals.write(index, total + 1);
        ports.count(index & 15);
        rates.execute_meter(index & 7, meta.color);
        signed_totals.write(index & 7, (int<16>)(bit<16>)total);
    }
    table fixed {
        key = { hdr.ethernet.type: exact; }
        actions = { learn; measure; NoAction; }
        const default_action = NoAction();
        const entries = {
            0x88b5: learn();
            0x88b6: measure(3);
        }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            fixed.apply();
            police_table.apply();
            if (hdr.tagged.isValid()) {
                routes.apply();
                kept_routes.apply();
            } else {
                forward.apply();
            }
        }
    }
}

control KindsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control KindsCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control KindsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tagged);
    }
}

@pkginfo(name="softswitch-test-kinds", version="1")
V1Switch(KindsParser(), KindsVerify(), KindsIngress(), KindsEgress(), KindsCompute(), KindsDeparser()) main;
