// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The ingress has classified the packet: the bridged metadata select the headers.

struct egress_metadata_t {
    bridge_flags_t bridge;
    bit<16>  checksum_residue;  // of a routed packet: its checksum without what the egress may change
}

parser EgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
    out egress_intrinsic_metadata_t standard) {

    Checksum() residue;

    state start {
        packet.extract(standard);
        packet.extract(meta.bridge);
        packet.extract(hdr.packet_in);
        transition select(meta.bridge.netfold, meta.bridge.routed) {
            (1, _):  parse_netfold;
            (_, 1):  parse_ethernet;
            default: accept;
        }
    }

    state parse_netfold {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.netfold);
        packet.extract(hdr.lanes);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        residue.subtract({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn });
        residue.subtract({ hdr.ipv4.ttl, hdr.ipv4.protocol });
        residue.subtract({ hdr.ipv4.checksum });
        residue.subtract_all_and_deposit(meta.checksum_residue);
        transition accept;
    }
}
