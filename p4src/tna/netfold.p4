// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// netfold for Tofino (TNA) and Tofino 2 (T2NA). Compare v1model/netfold.p4: the same tables in the same order.
//
//            +------------------------------- ingress ---------------------------------+      +------ egress ------+
//   parser ->|  Admission -> SlotTag -> SlotBitmap -> Lanes (four to a stage)          |  TM  |  EgressSaturation  |
//            |      |                       +-----> SlotAttributes, IngressSaturation  |----->|  Delivery          |-> deparser
//            |      +--> TreeRoutes --------+-----> Verdict -> EgressSelect -> verdicts|      |                    |
//            |  HashSeed -> Forwarding (all other traffic)                             |      |                    |
//            |  port_rx                                                                |      |  port_tx           |
//            +-------------------------------------------------------------------------+      +--------------------+
//
//   stage     0          1           2          3        4 ...
//
// The lanes fill the ingress to its end; what no decision needs is left to the egress. A chip has no quorums and no RoCE.

#include "arch.p4"
#include "../quorum/off.p4"
#include "ingress_parser.p4"
#include "egress_parser.p4"
#include "../common/admission.p4"
#include "../common/tree_routes.p4"
#include "../common/verdict.p4"
#include "../common/egress_select.p4"
#include HASH_SEED
#include "../common/forwarding.p4"
#include "../common/delivery.p4"
#include "slot_tag.p4"
#include "slot_bitmap.p4"
#include "slot_attributes.p4"
#include "lanes.p4"
#include "saturation.p4"

@pa_auto_init_metadata  // metadata is 0 until written, as on v1model
// The tag register returns an age for children and a tag for the controller. The assembler distinguishes them only in the same
// slot of the action bus, so in containers of one size; else the tag would lose all but its low byte.
@pa_container_size("ingress", "meta.slot.age", 32)
// The parser writes its errors to the low bits of their container, whatever the compiler puts there.
@pa_container_size("ingress", "ig_intr_md_from_prsr.parser_err", 16)
@pa_solitary("ingress", "ig_intr_md_from_prsr.parser_err")
FLOWS_SHARE_LANES
SEPARATE_STAGE_0_FLAGS
control SwitchIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t standard,
    in ingress_intrinsic_metadata_from_parser_t from_parser,
    inout ingress_intrinsic_metadata_for_deparser_t to_deparser, inout ingress_intrinsic_metadata_for_tm_t to_tm) {

    Admission()         admission;
    SlotTag()           slot_tag;
    SlotBitmap()        slot_bitmap;
    SlotAttributes()    slot_attributes;
    Lanes()             lanes;
    IngressSaturation() saturation;
    TreeRoutes()        tree_routes;
    Verdict()           verdict;
    EgressSelect()      egress_select;
    HashSeed()          hash_seed;
    Forwarding()        forwarding;

    @brief("Packets by tree_index * 32 + verdict; each netfold packet counts exactly once (I8).")
    Counter<bit<32>, bit<15>>(VERDICT_CELLS, CounterType_t.PACKETS_AND_BYTES) verdicts;

    @brief("Packets received, by port * 2 + 1 if of the protocol.")
    Counter<bit<32>, bit<10>>(PORTS * 2, CounterType_t.PACKETS_AND_BYTES) port_rx;

    apply {
        hdr.bridge.setValid();
        if (hdr.packet_out.isValid() && hdr.packet_out.egress_port != 0) {
            to_tm.ucast_egress_port = hdr.packet_out.egress_port;
        } else if (meta.ports_unparsed == 1 || (meta.netfold == 1 && hdr.udp.src_port == hdr.udp.dst_port)) {
            hdr.bridge.netfold = meta.wellformed;
            if (meta.wellformed == 1 && !meta.ip_invalid && from_parser.parser_err == 0) {
                admission.apply(hdr, meta);
            } else {
                meta.verdict = verdict_t.MALFORMED;
            }
            // No condition from here on: the role is a key of the tables, so that the verdict is placed beside the lanes.
            slot_tag.apply(hdr, meta);
            slot_bitmap.apply(meta);
            slot_attributes.apply(hdr, meta);
            lanes.apply(hdr, meta);
            saturation.apply(hdr);
            tree_routes.apply(meta);
            verdict.apply(hdr, meta);
            egress_select.apply(hdr, meta, to_tm, to_deparser);
            verdicts.count(meta.tree_index ++ (bit<5>)meta.verdict);
            hdr.bridge.bitmap_before = meta.slot.bitmap_before;
            hdr.bridge.ingress_port = (bit<16>)meta.ingress_port;
            hdr.bridge.ingress_port = hdr.bridge.ingress_port << 7;
        } else {
            // Of other traffic only the reply to the controller's own ARP request reaches the controller. (One assignment
            // for both branches would be placed last, beyond the last stage.)
            hdr.bridge.ingress_port = CONTROLLER;
            if (from_parser.parser_err == 0) {
                hash_seed.apply(hdr, meta);
                forwarding.apply(hdr, meta, to_tm, to_deparser);
            } else {
                to_deparser.drop_ctl = 1;  // truncated: its last bytes would leave as zeros
            }
        }
        port_rx.count(meta.ingress_port ++ hdr.bridge.netfold);
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t to_deparser) {
    apply {
        packet.emit(hdr.bridge);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.netfold);
        packet.emit(hdr.lanes);
    }
}

control SwitchEgress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t standard,
    in egress_intrinsic_metadata_from_parser_t from_parser,
    inout egress_intrinsic_metadata_for_deparser_t to_deparser,
    inout egress_intrinsic_metadata_for_output_port_t to_port) {

    EgressSaturation() saturation;
    Delivery()         delivery;

    @brief("Packets sent, by port * 2 + 1 if of the protocol; each copy of a multicast.")
    Counter<bit<32>, bit<10>>(PORTS * 2, CounterType_t.PACKETS_AND_BYTES) port_tx;

    apply {
        port_tx.count(standard.egress_port ++ meta.bridge.netfold);
        saturation.apply(hdr, meta);
        if (standard.egress_port == CPU_PORT) {
            // hdr.packet_in was parsed from the bridged metadata
        } else {
            hdr.packet_in.setInvalid();
            if (meta.bridge.routed == 1) {
                delivery.apply(hdr, meta, standard);
            }
        }
    }
}

control EgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
    in egress_intrinsic_metadata_for_deparser_t to_deparser) {

    Checksum() ipv4_checksum;

    apply {
        if (meta.bridge.netfold == 1) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
                hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments,
                hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst });
        }
        if (meta.bridge.netfold == 0) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.ttl, hdr.ipv4.protocol,
                meta.checksum_residue });
        }
        packet.emit(hdr);
    }
}

@pkginfo(name="netfold", version="1")
Pipeline(IngressParser(), SwitchIngress(), IngressDeparser(), EgressParser(), SwitchEgress(), EgressDeparser()) pipe;

Switch(pipe) main;
