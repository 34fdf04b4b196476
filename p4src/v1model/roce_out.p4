// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// A RESULT on its way to a worker that speaks RoCE: it becomes its predecessor's packet of the chunk, with the sum in it. What the
// packet said that completed the sum (opcode, ack request, solicited event) has come through the tree in the header's reserved
// byte; where it has not, the RESULT stays one.

control RoceOut(inout headers_t hdr, in standard_metadata_t standard) {

    bit<32> crc;

    @hidden action compute_icrc() {
        hash(crc, HashAlgorithm.crc32, 32w0, ICRC_FIELDS, 64w0x100000000);
    }

    @brief("The worker at this port: addresses, QPN and first PSN of the connection that ends there.")
    action deliver(ipv4_t src, ipv4_t dst, bit<16> udp_src_port, qpn_t qpn, psn_t first_psn, bit<5> log2_slots) {
        bit<8> said = hdr.netfold.reserved;
        psn_t chunk = ((psn_t)hdr.netfold.tag[19:0] << log2_slots) + (psn_t)hdr.netfold.slot;
        hdr.bth = { said & SAID_OPCODE, said[5:5], 1, 0, 0, DEFAULT_PARTITION, 0, qpn, said[6:6], 0, first_psn + chunk };
        hdr.ipv4.src = src;
        hdr.ipv4.dst = dst;
        hdr.ipv4.dscp = 0;
        hdr.ipv4.ecn = hdr.netfold.flags & FLAG_CONGESTION == 0 ? ECN_ECT0 : ECN_CE;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = udp_src_port;
        hdr.udp.dst_port = ROCE_UDP_PORT;
        hdr.netfold.setInvalid();
        hdr.icrc.setValid();
    }

    table workers {
        key = {
            standard.egress_port : exact @name("port");
            hdr.udp.dst_port     : exact @name("udp_port");
            hdr.netfold.tree     : exact @name("tree");
        }
        actions = { deliver; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

#ifdef FLOATS
    @hidden action turn_lanes() { FOR_EACH_LANE(TURN_LANE) }
#endif

    apply {
        bool floats = hdr.netfold.flags & FLAG_FLOATS != 0;
        bit<8> opcode = hdr.netfold.reserved & (SAID_ROCE | SAID_OPCODE);
        if (hdr.netfold.kind == kind_t.RESULT && (opcode == SAID_ROCE | SEND_FIRST || opcode == SAID_ROCE | SEND_MIDDLE ||
                                                  opcode == SAID_ROCE | SEND_LAST || opcode == SAID_ROCE | SEND_ONLY)) {
            if (workers.apply().hit) {
#ifdef FLOATS
                if (floats) {
                    turn_lanes();
                }
#endif
                compute_icrc();
                hdr.icrc.crc = ICRC_BYTES(crc);
            }
        }
    }
}
