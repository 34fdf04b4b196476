// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is particular to Tofino: the includes, the bridged metadata, the header struct, and the macros of common/.
//
// A packet runs one RegisterAction on a register, in one stage; so each control that owns a register chooses the action by a
// small constant table.

#ifndef NETFOLD_ARCH
#define NETFOLD_ARCH

#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

// A bitmap is two registers, which fill their stage together with those of the attributes.
#define CHILDREN 64

// A stage has 24 ternary blocks of 512 entries, and an admission entry is three blocks wide.
#ifndef ADMISSIONS
#define ADMISSIONS 4096
#endif

// Lanes fill every stage of Tofino 2 from the fifth on, and the verdicts of more trees find no room beside four lanes.
#if __TARGET_TOFINO__ == 2 && !defined(TREES)
#define TREES 512
#endif

#define NEXTHOPS_OF_A_GROUP 64
#define NEXTHOP_GROUPS      128

#include "../common/sizes.p4"
#include "../common/types.p4"
#include "../common/lanes.h"
#include "../common/slot_access.h"

typedef bit<16> slot_index_t;
typedef bit<32> lane_field_t;  // a lane is a key of the saturation tables, and a key cannot be signed

// The bit in its place: a comparison would cost a stage.
#define OWN_BIT bitmap_t

// What an ICMP error quotes is not parsed: there is no stage for a decision about it.
#define TARGET_METADATA

#include "../common/headers.p4"

// The PCIe port: 192 on Tofino 1 with two pipes, 320 with four; 0 on Tofino 2. The models have the Ethernet port 64.
#ifndef CPU_PORT_NUMBER
#if __TARGET_TOFINO__ == 2
#define CPU_PORT_NUMBER 0
#else
#define CPU_PORT_NUMBER 192
#endif
#endif

const port_t CPU_PORT = CPU_PORT_NUMBER;
const bit<16> CONTROLLER = CPU_PORT_NUMBER << 7;  // as packet_in_t has it

// Bridged from the ingress to the egress. The bytes after the flags become packet_in_t if the packet goes to the controller: the
// ingress writes them in whole bytes, because the port is at the other end of its two bytes there.
header bridge_t {
    bit<1>   netfold;   // a wellformed packet of the protocol
    bit<1>   routed;    // the egress addresses it to the neighbor
    bit<1>   has_slot;  // of this switch: its lanes are checked for saturation
    bit<5>   padding;
    bit<16>  ingress_port;  // << 7
    bitmap_t bitmap_before;
}

// The part that the egress parses.
header bridge_flags_t {
    bit<1>   netfold;
    bit<1>   routed;
    bit<1>   has_slot;
    bit<5>   padding;
}

struct headers_t {
    bridge_t      bridge;
    packet_in_t   packet_in;
    packet_out_t  packet_out;
    ethernet_t    ethernet;
    arp_t         arp;
    ipv4_header_t ipv4;
    udp_t         udp;
    netfold_t     netfold;
    lanes_t       lanes;
}

// The egress parses the first sixteen lanes; the others are payload there.
#define LANE_FIELD(n) lane_field_t v##n;
header first_lanes_t {
    LANES_16(LANE_FIELD, 0)
}
#undef LANE_FIELD

struct egress_headers_t {
    packet_in_t   packet_in;
    ethernet_t    ethernet;
    ipv4_header_t ipv4;
    udp_t         udp;
    netfold_t     netfold;
    first_lanes_t lanes;
}

#include "../common/metadata.p4"

// The way out of the ingress.
#define EGRESS_TARGET \
    inout ingress_intrinsic_metadata_for_tm_t to_tm, inout ingress_intrinsic_metadata_for_deparser_t to_deparser
#define DROP                to_deparser.drop_ctl = 1
#define SEND_BY(port)       to_tm.ucast_egress_port = port
#define REPLICATE_TO(group) to_tm.mcast_grp_a = group
#define ROUTED              hdr.bridge.routed = 1
#define REPLY_PORT          meta.ingress_port

// What a sum that this node sends has beside the slot's attributes.
#define ANNOTATE hdr.netfold.reserved = 0;

// A flag that ends in stage 0 must not share its container with a field that admission writes: the container is cleared in
// between, so admission would start a stage later, and the last lanes would be placed beyond the last stage.
#if __TARGET_TOFINO__ == 2
#define SEPARATE_STAGE_0_FLAGS \
    @pa_no_overlay("ingress", "meta.netfold") \
    @pa_no_overlay("ingress", "meta.ports_unparsed") \
    @pa_no_overlay("ingress", "meta.wellformed") \
    @pa_no_overlay("ingress", "meta.ip_invalid")
#else
#define SEPARATE_STAGE_0_FLAGS
#endif

#if __TARGET_TOFINO__ == 1
#define HASH_SEED      "../common/hash_seed.p4"
#define FLOW_DIGESTS \
    Hash<bit<32>>(HashAlgorithm_t.CRC32) flow_digest_1; \
    Hash<bit<32>>(HashAlgorithm_t.CRC32) flow_digest_2;
#define DIGEST_FLOW(n, ...) meta.flow_##n = flow_digest_##n.get(__VA_ARGS__);
#define FLOW_SELECTORS meta.flow_1 : selector; meta.flow_2 : selector;
#define FLOW_HASH      CRC32
// The digests of other traffic are where a contribution's first lanes are.
#define FLOWS_SHARE_LANES \
    @pa_alias("ingress", "hdr.lanes.v00", "meta.flow_1") \
    @pa_alias("ingress", "hdr.lanes.v01", "meta.flow_2")
#define ROUTES_STAGE   @stage(3)
#else
#define HASH_SEED      "no_hash_seed.p4"
#define FLOW_SELECTORS \
    hdr.ipv4.src      : selector; \
    hdr.ipv4.dst      : selector; \
    hdr.ipv4.protocol : selector; \
    meta.l4_src_port  : selector; \
    meta.l4_dst_port  : selector;
#ifndef FLOW_HASH
#define FLOW_HASH      CRC16
#endif
#define FLOWS_SHARE_LANES
#define ROUTES_STAGE
#endif

#define NEXTHOP_SETS \
    Hash<bit<14>>(HashAlgorithm_t.FLOW_HASH) flow_hash; \
    ActionProfile(NEXTHOPS) nexthops; \
    ActionSelector(nexthops, flow_hash, SelectorMode_t.FAIR, NEXTHOPS_OF_A_GROUP, NEXTHOP_GROUPS) nexthop_groups; \
    ROUTES_STAGE
#define NEXTHOP_CHOICE nexthop_groups

// The egress.
#define EGRESS_HEADERS  egress_headers_t
#define EGRESS_METADATA egress_metadata_t
#define EGRESS_STANDARD egress_intrinsic_metadata_t
#define IS_NETFOLD      hdr.netfold.isValid()

#endif
