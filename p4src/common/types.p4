// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Named types for every quantity of the protocol (docs/reference/protocol.md, sections 1 to 4), and what the controls of a switch
// tell apart. Numbers of the wire are in wire.p4.

#ifndef NETFOLD_TYPES
#define NETFOLD_TYPES

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9>  port_t;
typedef bit<16> group_t;       // multicast group

// Annotates the port of an action: `neighbors` has an entry for it.
#define NEIGHBOR @refers_to(neighbors, port)

typedef bit<16> tree_t;
typedef bit<10> tree_index_t;  // a tree's compact number on this switch; 0 is no tree
typedef bit<16> child_t;
typedef bit<16> slot_t;
typedef bit<32> tag_t;         // epoch:12 ++ round:20
typedef bit<8>  flags_t;
typedef bit<CHILDREN> bitmap_t;
typedef int<32> lane_t;

#include "wire.p4"

const bit<16> NETFOLD_BYTES = NETFOLD_HEADER_BYTES + 4 * LANES;

const bit<2> ECN_ECT0 = 2;
const bit<2> ECN_CE   = 3;

// The role of this switch for the packet, from the admission entry.
enum bit<3> role_t {
    NONE       = 0,  // the packet is refused
    FORWARD    = 1,  // on the path of an edge
    INNER      = 2,  // accumulates, sends its partial sum up
    ROOT       = 3,  // accumulates, sends the result down
    MULTICAST  = 4,  // on the result tree
    MANAGEMENT = 5   // the controller reads or resets a slot
}

// The packet's tag against the slot's; one bit each, as Tofino's comparison unit gives them.
enum bit<4> age_t {
    OLDER = 1,
    NEWER = 2,
    SAME  = 4
}

// State of the sum for a packet of a tree with a quorum: docs/reference/protocol.md, section 3.7.
enum bit<3> seal_t {
    OPEN        = 0,  // not sealed, or a tree without a quorum
    SEALING     = 1,  // this packet seals the sum
    SEALED      = 2,  // sealed before; the sender's contribution is in it
    LATE        = 3,  // sealed before without the sender's contribution, at the root
    SLOT_REUSED = 4,  // the slot holds a newer chunk, at the root
    BYPASS      = 5   // late or stale at an inner node: the root decides
}

#endif
