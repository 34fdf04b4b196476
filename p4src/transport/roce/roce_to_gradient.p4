// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Is it RoCE of a job? Then it becomes a GRADIENT.
//
//   a SEND of one packet's lanes, on a connection of a job    a GRADIENT; chunk = PSN - the connection's first one
//   any other SEND there, or one with a wrong ICRC            malformed
//   to a queue pair of a job, not from its peer               unadmitted
//   the same, with its QPN unparsed                           malformed: truncated, a fragment, or behind IPv4 options
//   an ICMP error about RoCE, to a host of a job              malformed, as one with its QPN unparsed
//   all else: ACK, NAK, CNP, other connections                other traffic
//
// A connection belongs to one epoch and carries 2^23 chunks. A PSN of the other half precedes its first one: it gets epoch 0,
// which no node admits.

control RoceToGradient(inout headers_t hdr, inout metadata_t meta) {

    bit<16> job_port;
    tree_t  job_tree;
    child_t sender;
    tag_t   tag;
    slot_t  slot;
    flags_t number_flags;
    ipv4_t  root_address;
    port_t  next_worker;
    port_t  peer_port;
    ipv4_t  peer_address;
    qpn_t   qpn;
    psn_t   chunk;
    bit<32> crc;

    @brief("A worker's connection to its successor: its SENDs are the contributions of the child. flags: 0, or FLAG_FLOATS.")
    action contribute(bit<16> udp_port, tree_t tree, child_t child, bit<12> epoch, @format(IPV4_ADDRESS) ipv4_t root,
                      psn_t first_psn, bit<5> log2_slots, NEIGHBOR port_t successor_port, flags_t flags) {
        chunk = hdr.bth.psn - first_psn;
        tag = (chunk[23:23] == 0 ? epoch : 0) ++ (bit<20>)(chunk >> log2_slots);
        slot = (slot_t)(chunk & ((24w1 << log2_slots) - 1));
        job_tree = tree;
        sender = child;
        number_flags = flags;
        job_port = udp_port;
        root_address = root;
        next_worker = successor_port;
    }

    @id(12)
    table connections {
        key = {
            meta.ingress_port : exact @name("ingress_port");
            hdr.ipv4.src      : exact @name("src") @format(IPV4_ADDRESS);
            hdr.ipv4.dst      : exact @name("dst") @format(IPV4_ADDRESS);
            qpn               : exact @name("qpn");
        }
        actions = { contribute; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    @brief("A queue pair of a job: admits RoCE by this port from this address alone.")
    action set_peer(port_t port, @format(IPV4_ADDRESS) ipv4_t src) {
        peer_port = port;
        peer_address = src;
    }

    @id(13)
    @brief("QPN 0: a packet whose QPN is not parsed.")
    table reserved_qps {
        key = {
            hdr.ipv4.dst : exact @name("dst") @format(IPV4_ADDRESS);
            qpn          : exact @name("qpn");
        }
        actions = { set_peer; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 2 * CONNECTIONS;
    }

    @hidden action compute_icrc() {
        hash(crc, HashAlgorithm.crc32, 32w0, ICRC_WORDS, 64w0x100000000);
    }

    @hidden action become_gradient() {
        hdr.netfold = { NETFOLD_VERSION, kind_t.GRADIENT, number_flags, job_tree, tag, slot, sender, 0,
                        1w1 ++ hdr.bth.ack_request ++ hdr.bth.solicited ++ hdr.bth.opcode[4:0], LANES };
        hdr.udp.src_port = job_port;
        hdr.udp.dst_port = job_port;
        hdr.ipv4.dst = root_address;
        hdr.bth.setInvalid();
        hdr.icrc.setInvalid();
        meta.ingress_port = meta.ingress_port | ROCE_SIDE;
        meta.reply_port = next_worker;  // a resent result goes to the next worker of the ring
        meta.wellformed = 1;
    }

    @hidden action swap_lane_bytes() {
        SWAP_ALL_LANE_BYTES
    }

    apply {
        qpn = 0;
        if (hdr.bth.isValid()) {
            qpn = hdr.bth.qpn;
        }
        if (connections.apply().hit) {
            if (hdr.icrc.isValid()) {
                meta.netfold = 1;
                compute_icrc();
                if (ICRC_BYTES(crc) == hdr.icrc.crc) {
                    become_gradient();
                    if (ADDS_FLOATS && number_flags & FLAG_FLOATS != 0) {
                        swap_lane_bytes();
                    }
                }
            } else if (hdr.bth.opcode <= MAX_SEND_OPCODE || hdr.bth.opcode & INVALIDATE_MASK == SEND_INVALIDATE) {
                meta.netfold = 1;
            }
        } else if (reserved_qps.apply().hit) {
            if (meta.ingress_port != peer_port || hdr.ipv4.src != peer_address) {
                meta.netfold = 1;
                if (qpn != 0) {
                    meta.verdict = verdict_t.UNADMITTED;
                }
            }
        }
    }
}
