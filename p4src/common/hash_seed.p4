// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// How does this switch's choice among next hops differ from that of the switches before it?
//
// All switches hash the same fields by the same CRC. Without a seed the flows that one switch sends by its first uplink would all
// take the first one at the next switch, too. A CRC is linear: a seed that is hashed as one more field would only exchange the
// next hops. A sum is not: its carries depend on the flow. So the seed is added to two CRCs of the flow, and a CRC of both sums
// chooses. With one sum, two switches whose seeds differ by long runs of equal bits would still choose alike too often.

control HashSeed(in headers_t hdr, inout metadata_t meta) {

    FLOW_DIGESTS

    @hidden action digest_flow() {
        DIGEST_FLOW(1, { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.l4_src_port, meta.l4_dst_port })
    }

    @hidden action digest_flow_again() {
        DIGEST_FLOW(2, { meta.l4_src_port, meta.l4_dst_port, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst })
    }

    @brief("This switch's summand of the hashes of flows.")
    action set_hash_seed(bit<32> seed) {
        meta.flow_1 = meta.flow_1 + seed;
        meta.flow_2 = meta.flow_2 + seed;
    }

    @id(7)
    table hash_seeds {
        key = { hdr.ipv4.version : exact @name("version"); }
        actions = { set_hash_seed; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            digest_flow();
            digest_flow_again();
            hash_seeds.apply();
        }
    }
}
