// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// As v1model's parser. IPv4 options stay in the payload: the checksum of such a packet is updated by what the switch changes,
// so that a wrong one stays wrong. A UDP datagram behind options could be to a job, and its ports are not parsed: it is dropped
// as malformed.

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t standard) {

    Checksum() ipv4_checksum;

    state start {
        packet.extract(standard);
        packet.advance(PORT_METADATA_SIZE);
        meta.ingress_port = standard.ingress_port;
        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_ARP:  parse_arp;
            default:        accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl) {
            (4, 5):         verify_ipv4;
            (4, 6 &&& 0xE): parse_options;
            (4, 8 &&& 0x8): parse_options;
            default:        not_ipv4;
        }
    }

    // An ingress that reads the parser's errors also gets rejected packets, without an error: so this is no reject.
    state not_ipv4 {
        meta.ip_invalid = true;
        transition accept;
    }

    state parse_options {
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_UDP): mark_ports_unparsed;
            default:           accept;
        }
    }

    state mark_ports_unparsed {
        meta.ports_unparsed = 1;
        transition accept;
    }

    state verify_ipv4 {
        meta.ip_invalid = ipv4_checksum.verify();
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, 0, PROTOCOL_UDP): parse_udp;
            (1, 0, PROTOCOL_UDP): parse_first_fragment;
            (0, 0, PROTOCOL_TCP): parse_tcp_ports;
            default:              accept;
        }
    }

    // Only the ports, for the ECMP hash.
    state parse_tcp_ports {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.l4_src_port = ports[31:16];
        meta.l4_dst_port = ports[15:0];
        transition accept;
    }

    // The ports are copied for the ECMP hash here and not later: the compiler lets one state refer back to them, not two.
    state parse_udp {
        packet.extract(hdr.udp);
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transition select(hdr.udp.src_port, hdr.udp.dst_port) {
            (NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): check_lengths;
            default: accept;
        }
    }

    // A state of its own, as its ports are not copied: all fragments of a datagram take one path.
    state parse_first_fragment {
        packet.extract(hdr.udp);
        transition select(hdr.udp.src_port, hdr.udp.dst_port) {
            (NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): first_fragment;
            default: accept;
        }
    }

    // Malformed: a host behind the last switch would reassemble it to a packet that no switch has admitted.
    state first_fragment {
        meta.netfold = 1;
        transition accept;
    }

    state check_lengths {
        meta.netfold = 1;
        transition select(hdr.ipv4.total_length, hdr.udp.length) {
            (28 + NETFOLD_BYTES, 8 + NETFOLD_BYTES): parse_netfold;
            default:                                 accept;
        }
    }

    state parse_netfold {
        packet.extract(hdr.netfold);
        transition select(hdr.netfold.version, hdr.netfold.kind, hdr.netfold.lanes) {
            (NETFOLD_VERSION, kind_t.GRADIENT, LANES): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESULT,   LANES): parse_lanes;
            (NETFOLD_VERSION, kind_t.READ,     LANES): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESET,    LANES): parse_lanes;
            default:                                   accept;
        }
    }

    state parse_lanes {
        packet.extract(hdr.lanes);
        // The parser also reads the frame check sequence, so a frame truncated by a few bytes would have it as lanes. Look at
        // the last of four more bytes: without it the parser sets an error. Its value has no meaning.
        transition select(packet.lookahead<bit<32>>()[7:0]) {
            0:       accept_whole;
            default: accept_whole_too;
        }
    }

    state accept_whole {
        meta.wellformed = 1;
        transition accept;
    }

    state accept_whole_too {
        meta.wellformed = 1;
        transition accept;
    }
}
