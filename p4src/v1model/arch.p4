// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// What is particular to v1model, and nowhere else: the includes, the header struct with v1model's varbit, and the names
// for what the standard metadata does.
//
// BMv2 ignores @atomic; it locks a register for the length of one action. So each control below that owns a register
// reads, decides and writes inside a single action.

#ifndef NETFOLD_ARCH
#define NETFOLD_ARCH

#include <core.p4>
#include <v1model.p4>

#include "../common/sizes.p4"
#include "../common/types.p4"
#include "../common/lanes.h"

typedef bit<32> slot_index_t;
typedef lane_t  lane_field_t;

#include "../common/headers.p4"

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
    lanes_t        lanes;
}

#include "../common/metadata.p4"

#endif
