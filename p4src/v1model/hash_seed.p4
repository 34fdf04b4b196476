// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// How does this switch's choice among next hops differ from that of the switches before it?
//
// All switches hash the same fields with the same CRC. Without a seed the flows that one switch sends by its first uplink would all
// take the first one at the next switch, too. A CRC is linear: a seed that is hashed as one more field would only exchange the
// next hops. A product is not: its upper half is hashed in place of the source port.

control HashSeed(in headers_t hdr, inout metadata_t meta) {

    @brief("This switch's odd factor of the hash of flows.")
    action set_hash_seed(bit<32> seed) {
        meta.l4_src_port = (bit<16>)((((meta.l4_src_port ++ meta.l4_dst_port) ^ hdr.ipv4.src) * seed) >> 16);
    }

    table hash_seeds {
        key = { hdr.ipv4.version : exact @name("version"); }
        actions = { set_hash_seed; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            hash_seeds.apply();
        }
    }
}
