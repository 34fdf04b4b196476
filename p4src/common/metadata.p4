// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What the controls of the switch tell each other about the packet in hand.

#ifndef NETFOLD_METADATA
#define NETFOLD_METADATA

struct slot_view_t {
    slot_index_t index;  // of the slot in the node's registers
    age_t    age;       // the packet's tag against the slot's
    tag_t    tag;       // what the slot held, for management
    bitmap_t seen;      // children in the slot before this packet
    bitmap_t again;     // of them the packet's own: not 0 if it was in already
    bit<1>   repeated;  // it was
    bit<1>   complete;  // with this packet all children are in
}

struct metadata_t {
    port_t       ingress_port;
    bit<1>       netfold;     // both its UDP ports are of the protocol's range; it is netfold's if they are equal
    bit<1>       buried;      // a datagram whose ports lie deeper than this target looks
    bit<1>       wellformed;  // its fields and lengths are as docs/protocol.md, section 2, has them
    bool         broken;      // its IPv4 header: version, length or checksum
    role_t       role;
    tree_index_t tree_index;
    bitmap_t     bit_of_child;
    bitmap_t     full;
    slot_view_t  slot;
    verdict_t    verdict;
    port_t       up_port;
    child_t      up_child;
    group_t      down_group;
    bit<1>       routed;    // leaves by the routing tables: the egress sets the MAC addresses
    bit<16>      l4_src_port;
    bit<16>      l4_dst_port;
}

#endif
