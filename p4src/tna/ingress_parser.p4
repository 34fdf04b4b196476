// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// As v1model's parser. IPv4 options stay in the payload: such a packet's checksum goes on as it came, mended by what the
// switch changes, so that a wrong one stays wrong. A UDP datagram behind options could be to a job, and its ports are not
// seen here: it is dropped as malformed.

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

    // Whoever asks for the parser's errors, as the ingress does, gets what the parser rejects as well, and no error of it.
    state not_ipv4 {
        meta.broken = true;
        transition accept;
    }

    state parse_options {
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_UDP): bury;
            default:           accept;
        }
    }

    state bury {
        meta.buried = 1;
        transition accept;
    }

    state verify_ipv4 {
        meta.broken = ipv4_checksum.verify();
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

    // The ports are kept for the ECMP hash here and not later: the compiler lets one state reach back for them, not two.
    state parse_udp {
        packet.extract(hdr.udp);
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transition select(hdr.udp.src_port, hdr.udp.dst_port) {
            (NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): check_lengths;
            default: accept;
        }
    }

    // A state of its own, as its ports are not kept: all fragments of a datagram take one way.
    state parse_first_fragment {
        packet.extract(hdr.udp);
        transition select(hdr.udp.src_port, hdr.udp.dst_port) {
            (NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): first_fragment;
            default: accept;
        }
    }

    // To a job it is malformed: whoever puts it together behind the last switch would have a packet that none admitted.
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
        // The parser sees the frame check sequence, so a frame that was cut by a few bytes would lend it to the lanes. Ask
        // for the last of four bytes more: where it is missing, that is an error of the parser's. Its value says nothing.
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
