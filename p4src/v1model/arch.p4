// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is particular to v1model, and nowhere else: the includes, the header struct with v1model's varbit, and the names
// for what the standard metadata does.
//
// BMv2 ignores @atomic; it locks a register for the length of one action, so each control below that owns a register reads,
// decides and writes inside a single action. That alone would not keep the registers of a slot in step: what does is that
// BMv2 has one ingress thread, and that softswitch takes packets one by one.

#ifndef NETFOLD_ARCH
#define NETFOLD_ARCH

#include <core.p4>
#include <v1model.p4>

#include "../common/sizes.p4"
#include "../common/types.p4"
#include "../common/lanes.h"
#include "../common/slot_access.h"

typedef bit<32> slot_index_t;
typedef lane_t  lane_field_t;

#include "../common/headers.p4"

// A packet of 32 lanes is of no path MTU of RoCE's.
#if LANES != 32
#define ROCE
#include "roce.p4"
#endif

// Floats take 40 KB of the program for each lane.
#if LANES == 64
#define FLOATS
#include "lanes_float.p4"
#endif

const flags_t FLAG_FLOATS = 0x04;  // the lanes are float32; dropped by programs that do not add them

#ifdef FLOATS
const flags_t FLAGS_OF_A_SLOT = FLAG_OVERFLOW | FLAG_CONGESTION | FLAG_FLOATS;
#else
const flags_t FLAGS_OF_A_SLOT = FLAG_OVERFLOW | FLAG_CONGESTION;
#endif

const port_t CPU_PORT = 510;

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
#ifdef ROCE
    bth_t          bth;
#endif
    lanes_t        lanes;
#ifdef ROCE
    icrc_t         icrc;
#endif
}

#include "../common/metadata.p4"

// The way out of the ingress.
#define WAY_OUT             inout standard_metadata_t standard
#define DROP                mark_to_drop(standard)
#define SEND_BY(port)       standard.egress_spec = port
#define REPLICATE_TO(group) standard.mcast_grp = group
#define ROUTED              meta.routed = 1

#define NEXTHOP_SETS   action_selector(HashAlgorithm.crc16, NEXTHOPS, 14) nexthops;
#define NEXTHOP_CHOICE nexthops

// The egress.
#define EGRESS_HEADERS  headers_t
#define EGRESS_METADATA metadata_t
#define EGRESS_STANDARD standard_metadata_t
#define IS_NETFOLD      meta.netfold == 1

#endif
