// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// RoCE v2 at the leaves: a worker's SEND becomes a GRADIENT before any other control sees it, and a RESULT becomes RoCE
// after all others. docs/reference/roce.md.

#include "roce_parser.p4"
#include "roce_to_gradient.p4"
#include "result_to_roce.p4"

control TransportIn(inout headers_t hdr, inout metadata_t meta) {

    RoceToGradient() roce_to_gradient;

    apply {
        if ((hdr.udp.isValid() && hdr.udp.dst_port == ROCE_UDP_PORT) || meta.quotes_roce == 1) {
            roce_to_gradient.apply(hdr, meta);
        }
        // Also from a switch below: the sum of a contribution that completes it carries the contribution's BTH bits.
        if (meta.wellformed == 1 && hdr.netfold.reserved & BTH_PRESENT != 0) {
            meta.annotation = hdr.netfold.reserved;
        }
    }
}

control TransportOut(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard) {

    ResultToRoce() result_to_roce;

    apply {
        if (meta.netfold == 1) {
            result_to_roce.apply(hdr, standard);
        }
    }
}
