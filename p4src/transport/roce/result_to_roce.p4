// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// A RESULT to a worker that speaks RoCE becomes its predecessor's packet of the chunk, with the sum. The header's reserved byte has
// the BTH bits (opcode, ack request, solicited event) of the contribution that completed the sum; without them the RESULT is
// delivered unchanged. RoCE has no bit for O: a lane that does not fit is at a limit, where sums wrap all lanes are.

control ResultToRoce(inout headers_t hdr, in standard_metadata_t standard) {

    bit<32> crc;

    @hidden action compute_icrc() {
        hash(crc, HashAlgorithm.crc32, 32w0, ICRC_WORDS, 64w0x100000000);
    }

    @brief("The worker at this port: addresses, QPN and first PSN of the connection to it.")
    action deliver(@format(IPV4_ADDRESS) ipv4_t src, @format(IPV4_ADDRESS) ipv4_t dst, bit<16> udp_src_port, qpn_t qpn,
                   psn_t first_psn, bit<5> log2_slots) {
        bit<8> bth_copy = hdr.netfold.reserved;
        psn_t chunk = ((psn_t)hdr.netfold.tag[19:0] << log2_slots) + (psn_t)hdr.netfold.slot;
        hdr.bth = { bth_copy & BTH_OPCODE, bth_copy[5:5], 1, 0, 0, DEFAULT_PARTITION, 0, qpn, bth_copy[6:6], 0, first_psn + chunk };
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

    @id(14)
    table roce_receivers {
        key = {
            standard.egress_port : exact @name("port");
            hdr.udp.dst_port     : exact @name("udp_port");
            hdr.netfold.tree     : exact @name("tree");
        }
        actions = { deliver; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    @hidden action swap_lane_bytes() {
        SWAP_ALL_LANE_BYTES
    }

    @hidden action saturate_lanes() {
        SATURATE_ALL_LANES
    }

    apply {
        bit<8> opcode = hdr.netfold.reserved & (BTH_PRESENT | BTH_OPCODE);
        if (hdr.netfold.kind == kind_t.RESULT && (opcode == BTH_PRESENT | SEND_FIRST || opcode == BTH_PRESENT | SEND_MIDDLE ||
                                                  opcode == BTH_PRESENT | SEND_LAST || opcode == BTH_PRESENT | SEND_ONLY)) {
            flags_t flags = hdr.netfold.flags;
            if (roce_receivers.apply().hit) {
                if (ADDS_FLOATS && flags & FLAG_FLOATS != 0) {
                    swap_lane_bytes();
                } else if (SUMS_WRAP && flags & FLAG_OVERFLOW != 0) {
                    saturate_lanes();
                }
                compute_icrc();
                hdr.icrc.crc = ICRC_BYTES(crc);
            }
        }
    }
}
