// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Named types for every quantity of the protocol (docs/protocol.md, sections 1 to 4).

#ifndef NETFOLD_TYPES
#define NETFOLD_TYPES

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9>  port_t;
typedef bit<16> group_t;       // multicast group

typedef bit<16> tree_t;
typedef bit<10> tree_index_t;  // a tree's compact number on this switch; 0 is no tree
typedef bit<16> child_t;
typedef bit<16> slot_t;
typedef bit<32> tag_t;         // epoch:12 ++ round:20
typedef bit<8>  flags_t;
typedef bit<32> bitmap_t;
typedef int<32> lane_t;

const bit<4>  NETFOLD_VERSION   = 1;
const bit<16> NETFOLD_UDP_PORTS = 0xF000;  // 61440 ... 61695
const bit<16> NETFOLD_UDP_MASK  = 0xFF00;
const bit<16> NETFOLD_BYTES     = 16 + 4 * LANES;

const flags_t FLAG_OVERFLOW   = 0x80;
const flags_t FLAG_CONGESTION = 0x40;

const lane_t LANE_MAX = 0x7FFFFFFF;
const lane_t LANE_MIN = -0x80000000;

const bit<2> ECN_ECT0 = 2;
const bit<2> ECN_CE   = 3;

enum bit<4> kind_t {
    GRADIENT = 0,
    RESULT   = 1,
    READ     = 2,
    RESET    = 3
}

// What this switch is to the packet; the admission entry says it.
enum bit<3> role_t {
    NONE    = 0,  // nothing: the packet is refused
    PASS    = 1,  // a switch on the path of an edge
    INNER   = 2,  // adds up, sends the sum up
    ROOT    = 3,  // adds up, turns the sum around
    RELAY   = 4,  // replicates results downwards
    MANAGER = 5   // the controller looks at a slot
}

// The packet's tag against the slot's; one bit each, as Tofino's comparison unit gives them.
enum bit<4> age_t {
    OLDER = 1,
    NEWER = 2,
    SAME  = 4
}

enum bit<5> verdict_t {
    NONE            = 0,
    ABSORBED        = 1,
    RESULT_SENT     = 2,
    RESULT_REPEATED = 3,
    SUM_SENT        = 4,
    SUM_REPEATED    = 5,
    PASSED          = 6,
    RELAYED         = 7,
    SLOT_READ       = 8,
    SLOT_RESET      = 9,
    UNADMITTED      = 16,
    STALE_EPOCH     = 17,
    BAD_SLOT        = 18,
    STALE_CHUNK     = 19,
    DUPLICATE       = 20,
    MALFORMED       = 21,
    UNROUTED        = 22,
    EXPIRED         = 23
}

#endif
