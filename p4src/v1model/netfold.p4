// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// netfold for v1model (softswitch, BMv2).
//
// A page of programs/ includes what this one uses, in this order: the sizes, types and terms of the target (arch.p4), the headers
// of a transport, all headers and the metadata (headers.p4), lanes, transport and quorum. A macro has to precede the page that uses it.
//
// Metadata is 0 until something writes it: both targets of v1model begin every packet so, and no control sets a field to 0 first.
//
//            +------------------------------ ingress -------------------------------+      +------ egress ------+
//   parser ->|  Classify -> TransportIn                                             |      |                    |
//            |   |-> packet-out                                                     |  TM  |  Delivery          |
//            |   |-> Admission -> Slot -> TreeRoutes -> Verdict -> EgressSelect     |----->|   -> TransportOut  |-> deparser
//            |   |    -> verdicts                                                   |      |                    |
//            |   |-> HashSeed -> Forwarding (all other traffic)                     |      |                    |
//            |  port_rx                                                             |      |  port_tx           |
//            +----------------------------------------------------------------------+      +--------------------+
//
// Each control answers one question; read Verdict (common/verdict.p4) first. The contract is docs/reference/protocol.md.

#include "parser.p4"
#include "checksum.p4"
#include "classify.p4"
#include "slot.p4"
#include "../common/admission.p4"
#include "../common/tree_routes.p4"
#include "../common/verdict.p4"
#include "../common/egress_select.p4"
#include "targets.p4"
#include "../common/hash_seed.p4"
#include "../common/forwarding.p4"
#include "../common/delivery.p4"

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    Classify()     classify;
    TransportIn()  transport_in;
    Admission()    admission;
    Slot()         slot;
    TreeRoutes()   tree_routes;
    Verdict()      verdict;
    SumForm()      sum_form;
    EgressSelect() egress_select;
    HashSeed()     hash_seed;
    Forwarding()   forwarding;

    @id(1)
    @brief("Packets by tree_index * 32 + verdict; each netfold packet counts exactly once (I8).")
    counter(VERDICT_CELLS, CounterType.packets_and_bytes) verdicts;

    @id(2)
    @brief("Packets received, by port * 2 + 1 if of a job: admitted, or refused for its slot or epoch alone.")
    counter(PORTS * 2, CounterType.packets_and_bytes) port_rx;

    bool sent_by_controller;

    // The end of the ingress. One action, since BMv2 takes longer for a second one than for what it does. Most packets are
    // only added to a sum: they get their verdict here, without a lookup.
    @hidden action count() {
        if (meta.is_only_added == 1) {
            meta.verdict = verdict_t.ACCUMULATED;
            mark_to_drop(standard);
        }
        bit<1> is_job_traffic = meta.netfold;
        if (meta.verdict == verdict_t.UNADMITTED || meta.verdict == verdict_t.MALFORMED) {
            is_job_traffic = 0;
        }
        port_rx.count((bit<32>)(standard.ingress_port ++ is_job_traffic));
        if (meta.netfold == 1 && !sent_by_controller) {
            verdicts.count((bit<32>)(meta.tree_index ++ (bit<5>)meta.verdict));
        }
        hdr.packet_out.setInvalid();
    }

    apply {
        classify.apply(hdr, meta, standard);
        transport_in.apply(hdr, meta);
        sent_by_controller = hdr.packet_out.isValid() && hdr.packet_out.egress_port != 0;
        if (sent_by_controller) {
            standard.egress_spec = hdr.packet_out.egress_port;
        } else if (meta.netfold == 1) {
            if (meta.wellformed == 1 && !meta.ip_invalid) {
                admission.apply(hdr, meta);
                slot.apply(hdr, meta);
                if (meta.is_only_added == 0) {
                    tree_routes.apply(meta);
                    verdict.apply(hdr, meta);
                    sum_form.apply(hdr, meta);
                }
            }
            if (meta.is_only_added == 0) {
                egress_select.apply(hdr, meta, standard);
            }
        } else {
            hash_seed.apply(hdr, meta);
            forwarding.apply(hdr, meta, standard);
        }
        count();
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    Delivery()     delivery;
    ResultCut()    result_cut;
    TransportOut() transport_out;

    @id(3)
    @brief("Packets sent, by port * 2 + 1 if of a job; each copy of a multicast. targeted_tx counts targeted ones.")
    counter(PORTS * 2, CounterType.packets_and_bytes) port_tx;

    // The time in the queue stands for its depth: it is that of the bytes ahead, also of copies that are cut behind the queue.
    @hidden action count() {
        standard.enq_qdepth = (bit<19>)(standard.deq_timedelta < MAX_QUEUE_US ? standard.deq_timedelta : MAX_QUEUE_US);
        if ((meta.routed & meta.netfold & meta.is_targeted) == 0) {
            port_tx.count((bit<32>)(standard.egress_port ++ meta.netfold));
        }
    }

    apply {
        count();
        if (standard.egress_port == CPU_PORT) {
            hdr.packet_in = { meta.reply_port, 0, meta.slot.bitmap_before };
        } else if (meta.routed == 1) {
            delivery.apply(hdr, meta, standard);
            if (meta.netfold == 1 && meta.is_targeted == 1) {
                result_cut.apply(hdr, meta, standard);
            } else {
                transport_out.apply(hdr, meta, standard);
            }
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
