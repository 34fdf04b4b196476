// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Is it a packet of the protocol? The parser has seen that both UDP ports are of its range; they have to be equal. An ICMP
// error that quotes such a packet has no UDP header.

control Classify(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard) {

    @hidden action classify() {
        meta.ip_invalid = standard.checksum_error == 1 || standard.parser_error != error.NoError;
        meta.verdict = verdict_t.MALFORMED;
        if (hdr.udp.isValid() && hdr.udp.src_port != hdr.udp.dst_port) {
            meta.netfold = 0;
        }
    }

    apply {
        classify();
    }
}
