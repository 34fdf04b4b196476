// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// RoCE v2 (InfiniBand specification, volume 1, annex A17) as far as a leaf reads and writes it: the base transport header
// of a reliable connection, and the invariant CRC. BTH and ICRC of a SEND with one packet's lanes are together as long as the
// netfold header: a conversion changes no length.

#ifndef NETFOLD_TRANSPORT_HEADERS
#define NETFOLD_TRANSPORT_HEADERS

const bit<16> ROCE_UDP_PORT = 4791;

const bit<8> SEND_FIRST       = 0x00;
const bit<8> SEND_MIDDLE      = 0x01;
const bit<8> SEND_LAST        = 0x02;
const bit<8> SEND_ONLY        = 0x04;
const bit<8> MAX_SEND_OPCODE  = 0x05;  // 0x03 and 0x05: with immediate data
const bit<8> SEND_INVALIDATE  = 0x16;  // 0x16 and 0x17: SENDs that invalidate a key
const bit<8> INVALIDATE_MASK  = 0xFE;

const bit<16> DEFAULT_PARTITION = 0xFFFF;

#ifndef CONNECTIONS
#define CONNECTIONS 1024     // of RoCE workers of this leaf, one for each tree
#endif

typedef bit<24> qpn_t;
typedef bit<24> psn_t;

header bth_t {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  migrated;
    bit<2>  pad;
    bit<4>  version;
    bit<16> partition;
    bit<8>  congestion;  // FECN, BECN and six reserved bits: not covered by the ICRC
    qpn_t   qpn;
    bit<1>  ack_request;
    bit<7>  reserved;
    psn_t   psn;
}

header icrc_t {
    bit<32> crc;
}

// In headers_t, before and after the lanes.
#define TRANSPORT_HEADER  bth_t bth;
#define TRANSPORT_TRAILER icrc_t icrc;

#define HAS_ROCE  // v1model/parser.p4 finds ICMP errors that quote RoCE

// A copy of BTH bits in the netfold header's reserved byte, from the worker's leaf through the tree.
const bit<8> BTH_PRESENT = 0x80;  // 0x40: ack request, 0x20: solicited event
const bit<8> BTH_OPCODE  = 0x1F;

// Admission sees a RoCE packet as one from a port without a neighbor: no UDP socket of the worker's host can contribute in its
// place.
const port_t ROCE_SIDE = 0x100;

// The CRC's lowest byte goes first.
#define ICRC_BYTES(crc) (crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24])

// What the ICRC is computed over: 64 ones, and everything from the IPv4 header on, with ones for what switches may change.
// Words of 64 bits, since each value is one more variable that BMv2 clears for every packet.
#define ICRC_WORDS { \
    64w0xFFFFFFFFFFFFFFFF, \
    hdr.ipv4.version ++ hdr.ipv4.ihl ++ 8w0xFF ++ hdr.ipv4.total_length ++ hdr.ipv4.identification ++ hdr.ipv4.reserved ++ \
        hdr.ipv4.dont_fragment ++ hdr.ipv4.more_fragments ++ hdr.ipv4.fragment_offset, \
    8w0xFF ++ hdr.ipv4.protocol ++ 16w0xFFFF ++ hdr.ipv4.src, \
    hdr.ipv4.dst ++ hdr.udp.src_port ++ hdr.udp.dst_port, \
    hdr.udp.length ++ 16w0xFFFF ++ hdr.bth.opcode ++ hdr.bth.solicited ++ hdr.bth.migrated ++ hdr.bth.pad ++ hdr.bth.version ++ \
        hdr.bth.partition, \
    8w0xFF ++ hdr.bth.qpn ++ hdr.bth.ack_request ++ hdr.bth.reserved ++ hdr.bth.psn, \
    hdr.lanes }

#endif
