// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Workers speak the protocol itself: nothing is converted. What transport/roce defines, empty.

parser TransportParser(packet_in packet, inout headers_t hdr) {
    state start {
        transition accept;
    }
}

control TransportIn(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control TransportOut(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard) {
    apply {}
}
