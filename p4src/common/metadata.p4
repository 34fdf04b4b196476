// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Metadata between the controls of a switch.

#ifndef NETFOLD_METADATA
#define NETFOLD_METADATA

struct slot_view_t {
    slot_index_t index;          // of the slot in the node's registers
    age_t    age;                // the packet's tag against the slot's
    tag_t    tag;                // the slot's tag before the packet, for management
    bitmap_t bitmap_before;      // the slot's bitmap before the packet
    OWN_BIT  own_bit_seen;       // not 0: the packet's own bit of it is set
    bit<1>   is_duplicate;       // the same, as a flag
    bit<1>   is_complete;        // with this packet the bitmap is full_mask
    seal_t   seal;
}

struct metadata_t {
    port_t       ingress_port;
    port_t       reply_port;      // where an answer to the sender leaves
    bit<1>       netfold;         // a packet of the protocol; before classification: both UDP ports are in its range
    bit<1>       ports_unparsed;  // a UDP datagram behind IPv4 options, which this target does not parse
    bit<1>       wellformed;      // fields and lengths are those of docs/reference/protocol.md, section 2
    bool         ip_invalid;      // version, length or checksum of the IPv4 header
    role_t       role;
    tree_index_t tree_index;
    bitmap_t     child_mask;      // the sender's bit
    bitmap_t     full_mask;       // the bitmap of a complete sum
    slot_view_t  slot;
    flags_t      quorum_flags;    // of a sum that this node sends, beside the slot's
    bit<8>       annotation;      // of a sum that this node sends: contributions, or the sender's BTH bits
    verdict_t    verdict;
    port_t       up_port;
    child_t      up_child;
    group_t      down_group;
    TARGET_METADATA
    bit<1>       routed;          // the egress writes the MAC addresses of the port's neighbor
    bit<16>      l4_src_port;
    bit<16>      l4_dst_port;
    bit<32>      flow_1;          // hashes of addresses, protocol and ports, each with this switch's seed
    bit<32>      flow_2;
}

#endif
