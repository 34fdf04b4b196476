// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// netfold for v1model (softswitch, BMv2).
//
//            +-------------------------------- Ingress ---------------------------------+      +---- Egress ----+
//   parser ->|  Admission -> SlotTag -> SlotBitmap -> SlotMarks, Lanes                   |  TM  |    Delivery    |
//            |   ^  |                                      |                            |----->|       |        |-> deparser
//   (RoCE) --|-> RoceIn  TreeRoutes ----------------> Verdict -> Exit -> verdicts        |      |    RoceOut     |
//            |  (everything else) Forwarding                                            |      +----------------+
//            +--------------------------------------------------------------------------+
//
// Each control answers one question; Verdict is the page to read first. The contract is docs/protocol.md.

#include "arch.p4"
#include "parser.p4"
#include "checksum.p4"
#include "../common/admission.p4"
#include "../common/tree_routes.p4"
#include "../common/verdict.p4"
#include "../common/exit.p4"
#include "../common/forwarding.p4"
#include "../common/delivery.p4"
#include "slot_tag.p4"
#include "slot_bitmap.p4"
#include "slot_marks.p4"
#include "lanes.p4"
#ifdef ROCE
#include "roce_in.p4"
#include "roce_out.p4"
#endif
#include "quorum.p4"

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

#ifdef ROCE
    RoceIn()      roce_in;
#endif
    Admission()   admission;
    SlotTag()     slot_tag;
    SlotBitmap()  slot_bitmap;
    SlotMarks()   slot_marks;
    Lanes()       lanes;
    TreeRoutes()  tree_routes;
    Verdict()     verdict;
    Exit()        exit_port;
    Forwarding()  forwarding;
    QuorumEntry() quorum_entry;
    QuorumExit()  quorum_exit;

    @brief("Packets by tree_index * 32 + verdict; each netfold packet counts exactly once (I8).")
    counter(VERDICT_CELLS, CounterType.packets_and_bytes) verdicts;

    @brief("What came in, by port * 2 + 1 if it is a job's: admitted, or refused for its slot or epoch alone.")
    counter(PORTS * 2, CounterType.packets_and_bytes) arrivals;

    bit<1> of_a_job;

    apply {
        quorum_t quorum = { 0, 0, 0, 0, 0, beside_t.NOTHING };
        meta.broken = standard.checksum_error == 1 || standard.parser_error != error.NoError;
        meta.verdict = verdict_t.MALFORMED;
        if (meta.netfold == 1 && hdr.udp.src_port != hdr.udp.dst_port) {
            meta.netfold = 0;
        }
#ifdef ROCE
        port_t answer_port = meta.ingress_port;
        if (hdr.udp.isValid() && hdr.udp.dst_port == ROCE_UDP_PORT) {
            roce_in.apply(hdr, meta, answer_port);
        }
#endif
        if (hdr.packet_out.isValid() && hdr.packet_out.egress_port != 0) {
            standard.egress_spec = hdr.packet_out.egress_port;
        } else if (meta.netfold == 1) {
            if (meta.wellformed == 1 && !meta.broken) {
#ifdef ROCE
                bit<8> said = hdr.netfold.reserved;
#endif
                admission.apply(hdr, meta);
                if (meta.role == role_t.INNER || meta.role == role_t.ROOT || meta.role == role_t.MANAGER) {
                    slot_tag.apply(hdr, meta);
                    if ((hdr.netfold.flags & FLAG_QUORUM) != 0 && meta.role != role_t.MANAGER) {
                        quorum_entry.apply(hdr, meta, quorum);
                    }
                    if (quorum.beside != beside_t.PASSED) {
                        slot_bitmap.apply(meta);
                        slot_marks.apply(hdr, meta);
                        lanes.apply(hdr, meta);
                    }
                    if (quorum.sealed == 1) {
                        meta.slot.repeated = 0;
                    }
                }
                tree_routes.apply(meta);
                if (quorum.beside == beside_t.PASSED) {
                    meta.role = role_t.PASS;
                }
                verdict.apply(hdr, meta);
#ifdef ROCE
                meta.ingress_port = answer_port;
                if (said & SAID_ROCE != 0) {
                    hdr.netfold.reserved = said;  // also of what the node made itself
                }
#endif
            }
            exit_port.apply(hdr, meta, standard);
            if (quorum.applies == 1) {
                quorum_exit.apply(hdr, meta, quorum, standard);
            }
            verdicts.count((bit<32>)(meta.tree_index ++ (bit<5>)meta.verdict));
        } else {
            forwarding.apply(hdr, meta, standard);
        }
        hdr.packet_out.setInvalid();
        of_a_job = meta.netfold;
        if (meta.verdict == verdict_t.UNADMITTED || meta.verdict == verdict_t.MALFORMED) {
            of_a_job = 0;
        }
        arrivals.count((bit<32>)(standard.ingress_port ++ of_a_job));
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    Delivery() delivery;
#ifdef ROCE
    RoceOut()  roce_out;
#endif

    @brief("What goes out, by port * 2 + 1 if it is a job's; each copy of what is replicated.")
    counter(PORTS * 2, CounterType.packets_and_bytes) departures;

    apply {
        departures.count((bit<32>)(standard.egress_port ++ meta.netfold));
        if (standard.egress_port == CPU_PORT) {
            hdr.packet_in = { meta.ingress_port, 0, meta.slot.seen };
        } else if (meta.routed == 1) {
            delivery.apply(hdr, meta, standard);
#ifdef ROCE
            if (meta.netfold == 1) {
                roce_out.apply(hdr, standard);
            }
#endif
        }
    }
}

control PacketDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

@pkginfo(name="netfold", version="1")
V1Switch(PacketParser(), VerifyIpv4Checksum(), SwitchIngress(), SwitchEgress(), UpdateIpv4Checksum(),
    PacketDeparser()) main;
