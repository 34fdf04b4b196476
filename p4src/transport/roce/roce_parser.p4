// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// A UDP datagram to RoCE's port: its BTH if it is long enough to have one; of a SEND with one packet's lanes, those and
// the ICRC too.

parser TransportParser(packet_in packet, inout headers_t hdr) {

    state start {
        transition select(hdr.udp.dst_port) {
            ROCE_UDP_PORT: check_lengths;
            default:       accept;
        }
    }

    state check_lengths {
        transition select(hdr.ipv4.ihl, hdr.ipv4.total_length, hdr.udp.length) {
            (5, 28 + NETFOLD_BYTES, 8 + NETFOLD_BYTES): parse_send;
            (5, _, 0 &&& 0xFFF0):                       accept;  // up to 15 bytes,
            (5, _, 16 &&& 0xFFFC):                      accept;  // up to 19: no BTH
            (5, _, _):                                  parse_bth;
            default:                                    accept;
        }
    }

    state parse_bth {
        packet.extract(hdr.bth);
        transition accept;
    }

    state parse_send {
        packet.extract(hdr.bth);
        transition select(hdr.bth.opcode, hdr.bth.pad, hdr.bth.version) {
            (SEND_FIRST,  0, 0): parse_lanes;
            (SEND_MIDDLE, 0, 0): parse_lanes;
            (SEND_LAST,   0, 0): parse_lanes;
            (SEND_ONLY,   0, 0): parse_lanes;
            default:             accept;
        }
    }

    state parse_lanes {
        packet.extract(hdr.lanes);
        packet.extract(hdr.icrc);
        transition accept;
    }
}
