// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is particular to v1model: the includes, and the macros of common/ in terms of the standard metadata.
//
// BMv2 ignores @atomic and locks a register for the length of one action, so a control that owns a register reads, decides
// and writes inside a single action. The registers of a slot stay in step because BMv2 has one ingress thread and softswitch
// processes packets one by one.

#ifndef NETFOLD_ARCH
#define NETFOLD_ARCH

#include <core.p4>
#include <v1model.p4>

#include "../common/sizes.p4"

#ifndef OWNERS
#define OWNERS 8192          // entries: one for each worker below this switch, of each tree
#endif

#include "../common/types.p4"
#ifdef WIDE_LANES
#include "wide_lanes.h"
#else
#include "../common/lanes.h"
typedef lane_t  lane_field_t;
#endif
#include "../common/slot_access.h"

#include "target_wire.p4"

typedef bit<32> slot_index_t;

const bit<16> SHORT_BYTES = NETFOLD_HEADER_BYTES;

// A flag: a key as wide as the bitmap would cost each lookup of a lane's table several words.
#define OWN_BIT bit<1>

#define TARGET_METADATA \
    bit<1>       is_targeted;     /* netfold.lanes says which workers want lanes */ \
    bit<1>       is_short;        /* the packet came without lanes */ \
    bit<2>       cut;             /* cut_t, of the copies of a result */ \
    port_t       owner_port;      /* of the result tree, towards the target's owner; 0: not below this switch */ \
    bit<1>       quotes_roce;     /* an ICMP error that quotes RoCE */ \
    bit<1>       is_only_added;   /* a contribution after which others are missing */

const port_t CPU_PORT = 510;

const bit<32> MAX_QUEUE_US = 0x7FFFE;  // the longest time in a queue that a threshold can be

// The way out of the ingress.
#define EGRESS_TARGET       inout standard_metadata_t standard
#define DROP                mark_to_drop(standard)
#define SEND_BY(port)       standard.egress_spec = port
#define REPLICATE_TO(group) standard.mcast_grp = group
#define ROUTED              meta.routed = 1
#define REPLY_PORT          meta.reply_port

// What a sum that this node sends has beside the slot's attributes.
#define ANNOTATE \
        hdr.netfold.reserved = meta.annotation; \
        hdr.netfold.flags = hdr.netfold.flags | meta.quorum_flags;

#define FLOW_DIGESTS
#define DIGEST_FLOW(n, ...) hash(meta.flow_##n, HashAlgorithm.crc32, 32w0, __VA_ARGS__, 64w0x100000000);

#define FLOW_SELECTORS meta.flow_1 : selector; meta.flow_2 : selector;
#define NEXTHOP_SETS   @id(1) action_selector(HashAlgorithm.crc32, NEXTHOPS, 14) nexthops;
#define NEXTHOP_CHOICE nexthops

// The egress.
#define EGRESS_HEADERS  headers_t
#define EGRESS_METADATA metadata_t
#define EGRESS_STANDARD standard_metadata_t
#define IS_NETFOLD      meta.netfold == 1

#endif
