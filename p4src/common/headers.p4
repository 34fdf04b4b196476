// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Everything on the wire, in wire order. The netfold header is drawn in docs/reference/protocol.md, section 2.

#ifndef NETFOLD_HEADERS
#define NETFOLD_HEADERS

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP  = 0x0806;
const bit<8>  PROTOCOL_TCP   = 6;
const bit<8>  PROTOCOL_UDP   = 17;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

// ARP for IPv4 over Ethernet (RFC 826).
header arp_t {
    bit<16> hardware_type;
    bit<16> protocol_type;
    bit<8>  hardware_length;
    bit<8>  protocol_length;
    bit<16> operation;
    mac_t   sender_mac;
    ipv4_t  sender_ip;
    mac_t   target_mac;
    ipv4_t  target_ip;
}

const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY   = 2;

header ipv4_header_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src;
    ipv4_t  dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header netfold_t {
    bit<4>  version;
    kind_t  kind;
    flags_t flags;
    tree_t  tree;
    tag_t   tag;
    slot_t  slot;
    child_t child;
    bit<8>  exponent;
    bit<8>  reserved;
    bit<16> lanes;
}

#define LANE_FIELD(n) lane_field_t v##n;
header lanes_t {
    FOR_EACH_LANE(LANE_FIELD)
}
#undef LANE_FIELD

// From the switch to the controller: the ingress port, and the bitmap of a slot that was read or reset.
@controller_header("packet_in")
header packet_in_t {
    port_t   ingress_port;
    bit<7>   padding;
    bitmap_t bitmap;
}

// From the controller: the port to send by; 0: process the packet as one received from the CPU port.
@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> padding;
}

#endif
