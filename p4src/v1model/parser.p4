// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Ethernet, ARP, IPv4 with options, UDP, netfold, and what an ICMP error quotes. A packet from and to ports of the range is wellformed if it reaches the
// end of parse_lanes; a truncated one leaves that state with an error. Other traffic that is parsed here leaves unchanged:
// datagrams between two different ports of the range, and what the program's transport parses.

parser PacketParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    TransportParser() transport_parser;

    state start {
        meta.ingress_port = standard.ingress_port;
        meta.reply_port = standard.ingress_port;
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
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.HeaderTooShort);
        transition select(hdr.ipv4.ihl) {
            5:       parse_transport;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) * 32);
        transition parse_transport;
    }

    // A first fragment has the ports of its datagram. The ECMP hash must not use them: the fragments take one path.
    state parse_transport {
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (_, 0, PROTOCOL_UDP):  parse_udp;
            (0, 0, PROTOCOL_TCP):  parse_tcp_ports;
            (_, 0, PROTOCOL_ICMP): parse_icmp;
            default:               accept;
        }
    }

    // Errors: destination unreachable, source quench, redirect, time exceeded, parameter problem. One in pieces hides its
    // quote; no host sends such a one.
    state parse_icmp {
        transition select(hdr.ipv4.more_fragments, packet.lookahead<bit<8>>()) {
            (0, 3):           parse_quote;
            (0, 4 &&& 0xFE):  parse_quote;
            (0, 11):          parse_quote;
            (0, 12):          parse_quote;
            (1, 3):           quotes_netfold;
            (1, 4 &&& 0xFE):  quotes_netfold;
            (1, 11):          quotes_netfold;
            (1, 12):          quotes_netfold;
            default:          accept;
        }
    }

    // The datagram that a host is said to have sent. Behind quoted options no port is looked for.
    state parse_quote {
        icmp_quote_t quote = packet.lookahead<icmp_quote_t>();
        transition select(quote.ihl, quote.protocol, quote.src_port, quote.dst_port) {
            (5, PROTOCOL_UDP, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): quotes_netfold;
#ifdef HAS_ROCE
            (5, PROTOCOL_UDP, ROCE_UDP_PORT, _): quotes_roce;
            (5, PROTOCOL_UDP, _, ROCE_UDP_PORT): quotes_roce;
#endif
            (5, _, _, _):            accept;
            (_, PROTOCOL_UDP, _, _): quotes_netfold;
            default:                 accept;
        }
    }

    // Malformed: its receiver would take it for a failure of its job's socket.
    state quotes_netfold {
        meta.netfold = 1;
        transition accept;
    }

#ifdef HAS_ROCE
    // TransportIn looks whether its receiver has queue pairs of a job.
    state quotes_roce {
        meta.quotes_roce = 1;
        transition accept;
    }
#endif

    // Only the ports, for the ECMP hash.
    state parse_tcp_ports {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.l4_src_port = ports[31:16];
        meta.l4_dst_port = ports[15:0];
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.ipv4.more_fragments, hdr.udp.src_port, hdr.udp.dst_port) {
            (1, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): first_fragment;
            (1, _, _): accept;
            (0, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): check_lengths;
            default:   parse_other_udp;
        }
    }

    state parse_other_udp {
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transport_parser.apply(packet, hdr);
        transition accept;
    }

    // Malformed: a host behind the last switch would reassemble it to a packet that no switch has admitted.
    state first_fragment {
        meta.netfold = 1;
        transition accept;
    }

    state check_lengths {
        meta.netfold = 1;
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transition select(hdr.ipv4.ihl, hdr.ipv4.total_length, hdr.udp.length) {
            (5, 28 + NETFOLD_BYTES, 8 + NETFOLD_BYTES): parse_netfold;
            (5, 28 + SHORT_BYTES,   8 + SHORT_BYTES):   parse_short;
            default:                                    accept;
        }
    }

    state parse_netfold {
        packet.extract(hdr.netfold);
        transition select(hdr.netfold.version, hdr.netfold.kind, hdr.netfold.lanes) {
            (NETFOLD_VERSION, kind_t.GRADIENT, LANES): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESULT,   LANES): parse_lanes;
            (NETFOLD_VERSION, kind_t.READ,     LANES): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESET,    LANES): parse_lanes;
            default:                                   check_target;
        }
    }

    // A whole targeted packet has D, and no quorum.
    state check_target {
        meta.is_targeted = 1;
        transition select(hdr.netfold.version, hdr.netfold.kind, hdr.netfold.flags, hdr.netfold.lanes) {
            (NETFOLD_VERSION, kind_t.GRADIENT, FLAG_DATA &&& (FLAG_DATA | FLAG_QUORUM), TARGETED &&& TARGETED): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESULT,   FLAG_DATA &&& (FLAG_DATA | FLAG_QUORUM), TARGETED &&& TARGETED): parse_lanes;
            default:                                                                                            accept;
        }
    }

    // A short contribution has no D. A short result may have it: it was cut.
    state parse_short {
        packet.extract(hdr.netfold);
        meta.is_targeted = 1;
        transition select(hdr.netfold.version, hdr.netfold.kind, hdr.netfold.flags, hdr.netfold.lanes) {
            (NETFOLD_VERSION, kind_t.GRADIENT, 0 &&& (FLAG_DATA | FLAG_QUORUM), TARGETED &&& TARGETED): accept_short;
            (NETFOLD_VERSION, kind_t.RESULT,   0 &&& FLAG_QUORUM,               TARGETED &&& TARGETED): accept_short;
            default:                                                                                    accept;
        }
    }

    state accept_short {
        meta.wellformed = 1;
        meta.is_short = 1;
        transition accept;
    }

    state parse_lanes {
        packet.extract(hdr.lanes);
        meta.wellformed = 1;
        transition accept;
    }
}
