// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// The headers of a program: those of common/headers.p4, IPv4 options as v1model's varbit, and the headers of its transport.

#ifndef NETFOLD_V1MODEL_HEADERS
#define NETFOLD_V1MODEL_HEADERS

#include "../common/headers.p4"

const bit<8> PROTOCOL_ICMP = 1;

// An ICMP error up to the ports of what it quotes (RFC 792).
header icmp_quote_t {
    bit<64> icmp;
    bit<4>  version;
    bit<4>  ihl;
    bit<64> fields;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src;
    ipv4_t  dst;
    bit<16> src_port;
    bit<16> dst_port;
}

header ipv4_options_t {
    varbit<320> options;
}

struct headers_t {
    packet_in_t    packet_in;
    packet_out_t   packet_out;
    ethernet_t     ethernet;
    arp_t          arp;
    ipv4_header_t  ipv4;
    ipv4_options_t ipv4_options;
    udp_t          udp;
    netfold_t      netfold;
    TRANSPORT_HEADER
    lanes_t        lanes;
    TRANSPORT_TRAILER
}

#include "../common/metadata.p4"

#endif
