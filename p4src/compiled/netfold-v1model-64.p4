// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0
// p4src/programs/v1model_64.p4 with its includes and macros replaced, by `make p4`: for editors; nothing compiles it

#include <core.p4>

#define V1MODEL_VERSION 20180101
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9> port_t;
typedef bit<16> group_t;
typedef bit<16> tree_t;
typedef bit<10> tree_index_t;
typedef bit<16> child_t;
typedef bit<16> slot_t;
typedef bit<32> tag_t;
typedef bit<8> flags_t;
typedef bit<32> bitmap_t;
typedef int<32> lane_t;
const bit<4> NETFOLD_VERSION = 1;
const bit<16> NETFOLD_UDP_PORTS = 0xf000;
const bit<16> NETFOLD_UDP_MASK = 0xff00;
const bit<16> NETFOLD_HEADER_BYTES = 16;
const flags_t FLAG_OVERFLOW = 0x80;
const flags_t FLAG_CONGESTION = 0x40;
const flags_t FLAG_QUORUM = 0x20;
const flags_t FLAG_SEAL = 0x10;
const flags_t FLAG_SLOT_REUSED = 0x8;
const flags_t FLAG_FLOATS = 0x4;
const lane_t LANE_MAX = 0x7fffffff;
const lane_t LANE_MIN = -0x80000000;
enum bit<4> kind_t {
    GRADIENT = 0,
    RESULT = 1,
    READ = 2,
    RESET = 3
}

enum bit<5> verdict_t {
    NONE = 0,
    ACCUMULATED = 1,
    RESULT_SENT = 2,
    RESULT_RESENT = 3,
    SUM_SENT = 4,
    SUM_RESENT = 5,
    FORWARDED = 6,
    MULTICAST = 7,
    SLOT_READ = 8,
    SLOT_RESET = 9,
    UNADMITTED = 16,
    STALE_EPOCH = 17,
    BAD_SLOT = 18,
    STALE_CHUNK = 19,
    DUPLICATE = 20,
    MALFORMED = 21,
    UNROUTED = 22,
    EXPIRED = 23,
    LATE = 24,
    SLOT_REUSED = 25
}

const bit<16> NETFOLD_BYTES = NETFOLD_HEADER_BYTES + 4 * 64;
const bit<2> ECN_ECT0 = 2;
const bit<2> ECN_CE = 3;
enum bit<3> role_t {
    NONE = 0,
    FORWARD = 1,
    INNER = 2,
    ROOT = 3,
    MULTICAST = 4,
    MANAGEMENT = 5
}

enum bit<4> age_t {
    OLDER = 1,
    NEWER = 2,
    SAME = 4
}

enum bit<3> seal_t {
    OPEN = 0,
    SEALING = 1,
    SEALED = 2,
    LATE = 3,
    SLOT_REUSED = 4,
    BYPASS = 5
}

typedef lane_t lane_field_t;
const flags_t FLAG_DATA = 0x2;
const bit<16> TARGETED = 0x8000;
typedef bit<32> slot_index_t;
const bit<16> SHORT_BYTES = NETFOLD_HEADER_BYTES;
const port_t CPU_PORT = 510;
const bit<32> MAX_QUEUE_US = 0x7fffe;
const bit<16> ROCE_UDP_PORT = 4791;
const bit<8> SEND_FIRST = 0x0;
const bit<8> SEND_MIDDLE = 0x1;
const bit<8> SEND_LAST = 0x2;
const bit<8> SEND_ONLY = 0x4;
const bit<8> MAX_SEND_OPCODE = 0x5;
const bit<8> SEND_INVALIDATE = 0x16;
const bit<8> INVALIDATE_MASK = 0xfe;
const bit<16> DEFAULT_PARTITION = 0xffff;
typedef bit<24> qpn_t;
typedef bit<24> psn_t;
header bth_t {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  migrated;
    bit<2>  pad;
    bit<4>  version;
    bit<16> partition;
    bit<8>  congestion;
    qpn_t   qpn;
    bit<1>  ack_request;
    bit<7>  reserved;
    psn_t   psn;
}

header icrc_t {
    bit<32> crc;
}

const bit<8> BTH_PRESENT = 0x80;
const bit<8> BTH_OPCODE = 0x1f;
const port_t ROCE_SIDE = 0x100;
const bit<16> ETHERTYPE_IPV4 = 0x800;
const bit<16> ETHERTYPE_ARP = 0x806;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;
header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

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
const bit<16> ARP_REPLY = 2;
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

header lanes_t {
    lane_field_t v00;
    lane_field_t v01;
    lane_field_t v02;
    lane_field_t v03;
    lane_field_t v04;
    lane_field_t v05;
    lane_field_t v06;
    lane_field_t v07;
    lane_field_t v08;
    lane_field_t v09;
    lane_field_t v0a;
    lane_field_t v0b;
    lane_field_t v0c;
    lane_field_t v0d;
    lane_field_t v0e;
    lane_field_t v0f;
    lane_field_t v10;
    lane_field_t v11;
    lane_field_t v12;
    lane_field_t v13;
    lane_field_t v14;
    lane_field_t v15;
    lane_field_t v16;
    lane_field_t v17;
    lane_field_t v18;
    lane_field_t v19;
    lane_field_t v1a;
    lane_field_t v1b;
    lane_field_t v1c;
    lane_field_t v1d;
    lane_field_t v1e;
    lane_field_t v1f;
    lane_field_t v20;
    lane_field_t v21;
    lane_field_t v22;
    lane_field_t v23;
    lane_field_t v24;
    lane_field_t v25;
    lane_field_t v26;
    lane_field_t v27;
    lane_field_t v28;
    lane_field_t v29;
    lane_field_t v2a;
    lane_field_t v2b;
    lane_field_t v2c;
    lane_field_t v2d;
    lane_field_t v2e;
    lane_field_t v2f;
    lane_field_t v30;
    lane_field_t v31;
    lane_field_t v32;
    lane_field_t v33;
    lane_field_t v34;
    lane_field_t v35;
    lane_field_t v36;
    lane_field_t v37;
    lane_field_t v38;
    lane_field_t v39;
    lane_field_t v3a;
    lane_field_t v3b;
    lane_field_t v3c;
    lane_field_t v3d;
    lane_field_t v3e;
    lane_field_t v3f;
}

@controller_header("packet_in") header packet_in_t {
    port_t   ingress_port;
    bit<7>   padding;
    bitmap_t bitmap;
}

@controller_header("packet_out") header packet_out_t {
    port_t egress_port;
    bit<7> padding;
}

const bit<8> PROTOCOL_ICMP = 1;
header icmp_quote_t {
    bit<64> icmp;
    bit<4>  version;
    bit<4>  ihl;
    bit<64> fields;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src;
    ipv4_t  dst;
    bit<16> src_port;
    bit<16> dst_port;
}

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
    bth_t          bth;
    lanes_t        lanes;
    icrc_t         icrc;
}

struct slot_view_t {
    slot_index_t index;
    age_t        age;
    tag_t        tag;
    bitmap_t     bitmap_before;
    bit<1>       own_bit_seen;
    bit<1>       is_duplicate;
    bit<1>       is_complete;
    seal_t       seal;
}

struct metadata_t {
    port_t       ingress_port;
    port_t       reply_port;
    bit<1>       netfold;
    bit<1>       ports_unparsed;
    bit<1>       wellformed;
    bool         ip_invalid;
    role_t       role;
    tree_index_t tree_index;
    bitmap_t     child_mask;
    bitmap_t     full_mask;
    slot_view_t  slot;
    flags_t      quorum_flags;
    bit<8>       annotation;
    verdict_t    verdict;
    port_t       up_port;
    child_t      up_child;
    group_t      down_group;
    bit<1>       is_targeted;
    bit<1>       is_short;
    bit<2>       cut;
    port_t       owner_port;
    bit<1>       quotes_roce;
    bit<1>       is_only_added;
    bit<1>       routed;
    bit<16>      l4_src_port;
    bit<16>      l4_dst_port;
    bit<32>      flow_1;
    bit<32>      flow_2;
}

const bool ADDS_FLOATS = true;
const flags_t SLOT_FLAGS = FLAG_OVERFLOW | FLAG_CONGESTION | FLAG_FLOATS | FLAG_DATA;
const bit<32> FLOAT_SIGN = 0x80000000;
const bit<32> FLOAT_MAGNITUDE = 0x7fffffff;
const bit<32> FLOAT_FRACTION = 0x7fffff;
const bit<32> FLOAT_INFINITY = 0x7f800000;
const bit<32> FLOAT_NAN = 0x7fc00000;
const bool SUMS_WRAP = false;
control Lanes(inout headers_t hdr, in metadata_t meta) {
    register<bit<32>>(4096) lane_00;
    register<bit<32>>(4096) lane_01;
    register<bit<32>>(4096) lane_02;
    register<bit<32>>(4096) lane_03;
    register<bit<32>>(4096) lane_04;
    register<bit<32>>(4096) lane_05;
    register<bit<32>>(4096) lane_06;
    register<bit<32>>(4096) lane_07;
    register<bit<32>>(4096) lane_08;
    register<bit<32>>(4096) lane_09;
    register<bit<32>>(4096) lane_0a;
    register<bit<32>>(4096) lane_0b;
    register<bit<32>>(4096) lane_0c;
    register<bit<32>>(4096) lane_0d;
    register<bit<32>>(4096) lane_0e;
    register<bit<32>>(4096) lane_0f;
    register<bit<32>>(4096) lane_10;
    register<bit<32>>(4096) lane_11;
    register<bit<32>>(4096) lane_12;
    register<bit<32>>(4096) lane_13;
    register<bit<32>>(4096) lane_14;
    register<bit<32>>(4096) lane_15;
    register<bit<32>>(4096) lane_16;
    register<bit<32>>(4096) lane_17;
    register<bit<32>>(4096) lane_18;
    register<bit<32>>(4096) lane_19;
    register<bit<32>>(4096) lane_1a;
    register<bit<32>>(4096) lane_1b;
    register<bit<32>>(4096) lane_1c;
    register<bit<32>>(4096) lane_1d;
    register<bit<32>>(4096) lane_1e;
    register<bit<32>>(4096) lane_1f;
    register<bit<32>>(4096) lane_20;
    register<bit<32>>(4096) lane_21;
    register<bit<32>>(4096) lane_22;
    register<bit<32>>(4096) lane_23;
    register<bit<32>>(4096) lane_24;
    register<bit<32>>(4096) lane_25;
    register<bit<32>>(4096) lane_26;
    register<bit<32>>(4096) lane_27;
    register<bit<32>>(4096) lane_28;
    register<bit<32>>(4096) lane_29;
    register<bit<32>>(4096) lane_2a;
    register<bit<32>>(4096) lane_2b;
    register<bit<32>>(4096) lane_2c;
    register<bit<32>>(4096) lane_2d;
    register<bit<32>>(4096) lane_2e;
    register<bit<32>>(4096) lane_2f;
    register<bit<32>>(4096) lane_30;
    register<bit<32>>(4096) lane_31;
    register<bit<32>>(4096) lane_32;
    register<bit<32>>(4096) lane_33;
    register<bit<32>>(4096) lane_34;
    register<bit<32>>(4096) lane_35;
    register<bit<32>>(4096) lane_36;
    register<bit<32>>(4096) lane_37;
    register<bit<32>>(4096) lane_38;
    register<bit<32>>(4096) lane_39;
    register<bit<32>>(4096) lane_3a;
    register<bit<32>>(4096) lane_3b;
    register<bit<32>>(4096) lane_3c;
    register<bit<32>>(4096) lane_3d;
    register<bit<32>>(4096) lane_3e;
    register<bit<32>>(4096) lane_3f;
    bit<32> held;
    lane_t sum;
    @hidden action claim() {
        lane_00.write(meta.slot.index, (bit<32>)hdr.lanes.v00);
        lane_01.write(meta.slot.index, (bit<32>)hdr.lanes.v01);
        lane_02.write(meta.slot.index, (bit<32>)hdr.lanes.v02);
        lane_03.write(meta.slot.index, (bit<32>)hdr.lanes.v03);
        lane_04.write(meta.slot.index, (bit<32>)hdr.lanes.v04);
        lane_05.write(meta.slot.index, (bit<32>)hdr.lanes.v05);
        lane_06.write(meta.slot.index, (bit<32>)hdr.lanes.v06);
        lane_07.write(meta.slot.index, (bit<32>)hdr.lanes.v07);
        lane_08.write(meta.slot.index, (bit<32>)hdr.lanes.v08);
        lane_09.write(meta.slot.index, (bit<32>)hdr.lanes.v09);
        lane_0a.write(meta.slot.index, (bit<32>)hdr.lanes.v0a);
        lane_0b.write(meta.slot.index, (bit<32>)hdr.lanes.v0b);
        lane_0c.write(meta.slot.index, (bit<32>)hdr.lanes.v0c);
        lane_0d.write(meta.slot.index, (bit<32>)hdr.lanes.v0d);
        lane_0e.write(meta.slot.index, (bit<32>)hdr.lanes.v0e);
        lane_0f.write(meta.slot.index, (bit<32>)hdr.lanes.v0f);
        lane_10.write(meta.slot.index, (bit<32>)hdr.lanes.v10);
        lane_11.write(meta.slot.index, (bit<32>)hdr.lanes.v11);
        lane_12.write(meta.slot.index, (bit<32>)hdr.lanes.v12);
        lane_13.write(meta.slot.index, (bit<32>)hdr.lanes.v13);
        lane_14.write(meta.slot.index, (bit<32>)hdr.lanes.v14);
        lane_15.write(meta.slot.index, (bit<32>)hdr.lanes.v15);
        lane_16.write(meta.slot.index, (bit<32>)hdr.lanes.v16);
        lane_17.write(meta.slot.index, (bit<32>)hdr.lanes.v17);
        lane_18.write(meta.slot.index, (bit<32>)hdr.lanes.v18);
        lane_19.write(meta.slot.index, (bit<32>)hdr.lanes.v19);
        lane_1a.write(meta.slot.index, (bit<32>)hdr.lanes.v1a);
        lane_1b.write(meta.slot.index, (bit<32>)hdr.lanes.v1b);
        lane_1c.write(meta.slot.index, (bit<32>)hdr.lanes.v1c);
        lane_1d.write(meta.slot.index, (bit<32>)hdr.lanes.v1d);
        lane_1e.write(meta.slot.index, (bit<32>)hdr.lanes.v1e);
        lane_1f.write(meta.slot.index, (bit<32>)hdr.lanes.v1f);
        lane_20.write(meta.slot.index, (bit<32>)hdr.lanes.v20);
        lane_21.write(meta.slot.index, (bit<32>)hdr.lanes.v21);
        lane_22.write(meta.slot.index, (bit<32>)hdr.lanes.v22);
        lane_23.write(meta.slot.index, (bit<32>)hdr.lanes.v23);
        lane_24.write(meta.slot.index, (bit<32>)hdr.lanes.v24);
        lane_25.write(meta.slot.index, (bit<32>)hdr.lanes.v25);
        lane_26.write(meta.slot.index, (bit<32>)hdr.lanes.v26);
        lane_27.write(meta.slot.index, (bit<32>)hdr.lanes.v27);
        lane_28.write(meta.slot.index, (bit<32>)hdr.lanes.v28);
        lane_29.write(meta.slot.index, (bit<32>)hdr.lanes.v29);
        lane_2a.write(meta.slot.index, (bit<32>)hdr.lanes.v2a);
        lane_2b.write(meta.slot.index, (bit<32>)hdr.lanes.v2b);
        lane_2c.write(meta.slot.index, (bit<32>)hdr.lanes.v2c);
        lane_2d.write(meta.slot.index, (bit<32>)hdr.lanes.v2d);
        lane_2e.write(meta.slot.index, (bit<32>)hdr.lanes.v2e);
        lane_2f.write(meta.slot.index, (bit<32>)hdr.lanes.v2f);
        lane_30.write(meta.slot.index, (bit<32>)hdr.lanes.v30);
        lane_31.write(meta.slot.index, (bit<32>)hdr.lanes.v31);
        lane_32.write(meta.slot.index, (bit<32>)hdr.lanes.v32);
        lane_33.write(meta.slot.index, (bit<32>)hdr.lanes.v33);
        lane_34.write(meta.slot.index, (bit<32>)hdr.lanes.v34);
        lane_35.write(meta.slot.index, (bit<32>)hdr.lanes.v35);
        lane_36.write(meta.slot.index, (bit<32>)hdr.lanes.v36);
        lane_37.write(meta.slot.index, (bit<32>)hdr.lanes.v37);
        lane_38.write(meta.slot.index, (bit<32>)hdr.lanes.v38);
        lane_39.write(meta.slot.index, (bit<32>)hdr.lanes.v39);
        lane_3a.write(meta.slot.index, (bit<32>)hdr.lanes.v3a);
        lane_3b.write(meta.slot.index, (bit<32>)hdr.lanes.v3b);
        lane_3c.write(meta.slot.index, (bit<32>)hdr.lanes.v3c);
        lane_3d.write(meta.slot.index, (bit<32>)hdr.lanes.v3d);
        lane_3e.write(meta.slot.index, (bit<32>)hdr.lanes.v3e);
        lane_3f.write(meta.slot.index, (bit<32>)hdr.lanes.v3f);
    }
    @hidden action add() {
        lane_00.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v00;
        }
        lane_00.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v00 = sum;
        lane_01.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v01;
        }
        lane_01.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v01 = sum;
        lane_02.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v02;
        }
        lane_02.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v02 = sum;
        lane_03.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v03;
        }
        lane_03.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v03 = sum;
        lane_04.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v04;
        }
        lane_04.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v04 = sum;
        lane_05.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v05;
        }
        lane_05.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v05 = sum;
        lane_06.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v06;
        }
        lane_06.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v06 = sum;
        lane_07.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v07;
        }
        lane_07.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v07 = sum;
        lane_08.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v08;
        }
        lane_08.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v08 = sum;
        lane_09.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v09;
        }
        lane_09.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v09 = sum;
        lane_0a.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v0a;
        }
        lane_0a.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v0a = sum;
        lane_0b.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v0b;
        }
        lane_0b.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v0b = sum;
        lane_0c.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v0c;
        }
        lane_0c.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v0c = sum;
        lane_0d.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v0d;
        }
        lane_0d.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v0d = sum;
        lane_0e.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v0e;
        }
        lane_0e.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v0e = sum;
        lane_0f.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v0f;
        }
        lane_0f.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v0f = sum;
        lane_10.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v10;
        }
        lane_10.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v10 = sum;
        lane_11.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v11;
        }
        lane_11.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v11 = sum;
        lane_12.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v12;
        }
        lane_12.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v12 = sum;
        lane_13.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v13;
        }
        lane_13.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v13 = sum;
        lane_14.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v14;
        }
        lane_14.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v14 = sum;
        lane_15.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v15;
        }
        lane_15.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v15 = sum;
        lane_16.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v16;
        }
        lane_16.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v16 = sum;
        lane_17.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v17;
        }
        lane_17.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v17 = sum;
        lane_18.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v18;
        }
        lane_18.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v18 = sum;
        lane_19.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v19;
        }
        lane_19.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v19 = sum;
        lane_1a.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v1a;
        }
        lane_1a.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v1a = sum;
        lane_1b.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v1b;
        }
        lane_1b.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v1b = sum;
        lane_1c.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v1c;
        }
        lane_1c.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v1c = sum;
        lane_1d.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v1d;
        }
        lane_1d.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v1d = sum;
        lane_1e.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v1e;
        }
        lane_1e.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v1e = sum;
        lane_1f.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v1f;
        }
        lane_1f.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v1f = sum;
        lane_20.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v20;
        }
        lane_20.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v20 = sum;
        lane_21.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v21;
        }
        lane_21.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v21 = sum;
        lane_22.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v22;
        }
        lane_22.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v22 = sum;
        lane_23.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v23;
        }
        lane_23.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v23 = sum;
        lane_24.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v24;
        }
        lane_24.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v24 = sum;
        lane_25.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v25;
        }
        lane_25.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v25 = sum;
        lane_26.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v26;
        }
        lane_26.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v26 = sum;
        lane_27.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v27;
        }
        lane_27.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v27 = sum;
        lane_28.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v28;
        }
        lane_28.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v28 = sum;
        lane_29.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v29;
        }
        lane_29.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v29 = sum;
        lane_2a.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v2a;
        }
        lane_2a.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v2a = sum;
        lane_2b.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v2b;
        }
        lane_2b.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v2b = sum;
        lane_2c.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v2c;
        }
        lane_2c.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v2c = sum;
        lane_2d.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v2d;
        }
        lane_2d.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v2d = sum;
        lane_2e.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v2e;
        }
        lane_2e.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v2e = sum;
        lane_2f.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v2f;
        }
        lane_2f.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v2f = sum;
        lane_30.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v30;
        }
        lane_30.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v30 = sum;
        lane_31.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v31;
        }
        lane_31.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v31 = sum;
        lane_32.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v32;
        }
        lane_32.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v32 = sum;
        lane_33.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v33;
        }
        lane_33.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v33 = sum;
        lane_34.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v34;
        }
        lane_34.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v34 = sum;
        lane_35.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v35;
        }
        lane_35.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v35 = sum;
        lane_36.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v36;
        }
        lane_36.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v36 = sum;
        lane_37.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v37;
        }
        lane_37.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v37 = sum;
        lane_38.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v38;
        }
        lane_38.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v38 = sum;
        lane_39.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v39;
        }
        lane_39.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v39 = sum;
        lane_3a.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v3a;
        }
        lane_3a.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v3a = sum;
        lane_3b.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v3b;
        }
        lane_3b.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v3b = sum;
        lane_3c.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v3c;
        }
        lane_3c.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v3c = sum;
        lane_3d.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v3d;
        }
        lane_3d.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v3d = sum;
        lane_3e.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v3e;
        }
        lane_3e.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v3e = sum;
        lane_3f.read(held, meta.slot.index);
        sum = (lane_t)held;
        if (sum != LANE_MAX && sum != LANE_MIN) {
            sum = sum |+| hdr.lanes.v3f;
        }
        lane_3f.write(meta.slot.index, (bit<32>)sum);
        hdr.lanes.v3f = sum;
    }
    @hidden action read() {
        lane_00.read(held, meta.slot.index);
        hdr.lanes.v00 = (lane_t)held;
        lane_01.read(held, meta.slot.index);
        hdr.lanes.v01 = (lane_t)held;
        lane_02.read(held, meta.slot.index);
        hdr.lanes.v02 = (lane_t)held;
        lane_03.read(held, meta.slot.index);
        hdr.lanes.v03 = (lane_t)held;
        lane_04.read(held, meta.slot.index);
        hdr.lanes.v04 = (lane_t)held;
        lane_05.read(held, meta.slot.index);
        hdr.lanes.v05 = (lane_t)held;
        lane_06.read(held, meta.slot.index);
        hdr.lanes.v06 = (lane_t)held;
        lane_07.read(held, meta.slot.index);
        hdr.lanes.v07 = (lane_t)held;
        lane_08.read(held, meta.slot.index);
        hdr.lanes.v08 = (lane_t)held;
        lane_09.read(held, meta.slot.index);
        hdr.lanes.v09 = (lane_t)held;
        lane_0a.read(held, meta.slot.index);
        hdr.lanes.v0a = (lane_t)held;
        lane_0b.read(held, meta.slot.index);
        hdr.lanes.v0b = (lane_t)held;
        lane_0c.read(held, meta.slot.index);
        hdr.lanes.v0c = (lane_t)held;
        lane_0d.read(held, meta.slot.index);
        hdr.lanes.v0d = (lane_t)held;
        lane_0e.read(held, meta.slot.index);
        hdr.lanes.v0e = (lane_t)held;
        lane_0f.read(held, meta.slot.index);
        hdr.lanes.v0f = (lane_t)held;
        lane_10.read(held, meta.slot.index);
        hdr.lanes.v10 = (lane_t)held;
        lane_11.read(held, meta.slot.index);
        hdr.lanes.v11 = (lane_t)held;
        lane_12.read(held, meta.slot.index);
        hdr.lanes.v12 = (lane_t)held;
        lane_13.read(held, meta.slot.index);
        hdr.lanes.v13 = (lane_t)held;
        lane_14.read(held, meta.slot.index);
        hdr.lanes.v14 = (lane_t)held;
        lane_15.read(held, meta.slot.index);
        hdr.lanes.v15 = (lane_t)held;
        lane_16.read(held, meta.slot.index);
        hdr.lanes.v16 = (lane_t)held;
        lane_17.read(held, meta.slot.index);
        hdr.lanes.v17 = (lane_t)held;
        lane_18.read(held, meta.slot.index);
        hdr.lanes.v18 = (lane_t)held;
        lane_19.read(held, meta.slot.index);
        hdr.lanes.v19 = (lane_t)held;
        lane_1a.read(held, meta.slot.index);
        hdr.lanes.v1a = (lane_t)held;
        lane_1b.read(held, meta.slot.index);
        hdr.lanes.v1b = (lane_t)held;
        lane_1c.read(held, meta.slot.index);
        hdr.lanes.v1c = (lane_t)held;
        lane_1d.read(held, meta.slot.index);
        hdr.lanes.v1d = (lane_t)held;
        lane_1e.read(held, meta.slot.index);
        hdr.lanes.v1e = (lane_t)held;
        lane_1f.read(held, meta.slot.index);
        hdr.lanes.v1f = (lane_t)held;
        lane_20.read(held, meta.slot.index);
        hdr.lanes.v20 = (lane_t)held;
        lane_21.read(held, meta.slot.index);
        hdr.lanes.v21 = (lane_t)held;
        lane_22.read(held, meta.slot.index);
        hdr.lanes.v22 = (lane_t)held;
        lane_23.read(held, meta.slot.index);
        hdr.lanes.v23 = (lane_t)held;
        lane_24.read(held, meta.slot.index);
        hdr.lanes.v24 = (lane_t)held;
        lane_25.read(held, meta.slot.index);
        hdr.lanes.v25 = (lane_t)held;
        lane_26.read(held, meta.slot.index);
        hdr.lanes.v26 = (lane_t)held;
        lane_27.read(held, meta.slot.index);
        hdr.lanes.v27 = (lane_t)held;
        lane_28.read(held, meta.slot.index);
        hdr.lanes.v28 = (lane_t)held;
        lane_29.read(held, meta.slot.index);
        hdr.lanes.v29 = (lane_t)held;
        lane_2a.read(held, meta.slot.index);
        hdr.lanes.v2a = (lane_t)held;
        lane_2b.read(held, meta.slot.index);
        hdr.lanes.v2b = (lane_t)held;
        lane_2c.read(held, meta.slot.index);
        hdr.lanes.v2c = (lane_t)held;
        lane_2d.read(held, meta.slot.index);
        hdr.lanes.v2d = (lane_t)held;
        lane_2e.read(held, meta.slot.index);
        hdr.lanes.v2e = (lane_t)held;
        lane_2f.read(held, meta.slot.index);
        hdr.lanes.v2f = (lane_t)held;
        lane_30.read(held, meta.slot.index);
        hdr.lanes.v30 = (lane_t)held;
        lane_31.read(held, meta.slot.index);
        hdr.lanes.v31 = (lane_t)held;
        lane_32.read(held, meta.slot.index);
        hdr.lanes.v32 = (lane_t)held;
        lane_33.read(held, meta.slot.index);
        hdr.lanes.v33 = (lane_t)held;
        lane_34.read(held, meta.slot.index);
        hdr.lanes.v34 = (lane_t)held;
        lane_35.read(held, meta.slot.index);
        hdr.lanes.v35 = (lane_t)held;
        lane_36.read(held, meta.slot.index);
        hdr.lanes.v36 = (lane_t)held;
        lane_37.read(held, meta.slot.index);
        hdr.lanes.v37 = (lane_t)held;
        lane_38.read(held, meta.slot.index);
        hdr.lanes.v38 = (lane_t)held;
        lane_39.read(held, meta.slot.index);
        hdr.lanes.v39 = (lane_t)held;
        lane_3a.read(held, meta.slot.index);
        hdr.lanes.v3a = (lane_t)held;
        lane_3b.read(held, meta.slot.index);
        hdr.lanes.v3b = (lane_t)held;
        lane_3c.read(held, meta.slot.index);
        hdr.lanes.v3c = (lane_t)held;
        lane_3d.read(held, meta.slot.index);
        hdr.lanes.v3d = (lane_t)held;
        lane_3e.read(held, meta.slot.index);
        hdr.lanes.v3e = (lane_t)held;
        lane_3f.read(held, meta.slot.index);
        hdr.lanes.v3f = (lane_t)held;
    }
    @hidden action clear() {
        lane_00.write(meta.slot.index, 0);
        lane_01.write(meta.slot.index, 0);
        lane_02.write(meta.slot.index, 0);
        lane_03.write(meta.slot.index, 0);
        lane_04.write(meta.slot.index, 0);
        lane_05.write(meta.slot.index, 0);
        lane_06.write(meta.slot.index, 0);
        lane_07.write(meta.slot.index, 0);
        lane_08.write(meta.slot.index, 0);
        lane_09.write(meta.slot.index, 0);
        lane_0a.write(meta.slot.index, 0);
        lane_0b.write(meta.slot.index, 0);
        lane_0c.write(meta.slot.index, 0);
        lane_0d.write(meta.slot.index, 0);
        lane_0e.write(meta.slot.index, 0);
        lane_0f.write(meta.slot.index, 0);
        lane_10.write(meta.slot.index, 0);
        lane_11.write(meta.slot.index, 0);
        lane_12.write(meta.slot.index, 0);
        lane_13.write(meta.slot.index, 0);
        lane_14.write(meta.slot.index, 0);
        lane_15.write(meta.slot.index, 0);
        lane_16.write(meta.slot.index, 0);
        lane_17.write(meta.slot.index, 0);
        lane_18.write(meta.slot.index, 0);
        lane_19.write(meta.slot.index, 0);
        lane_1a.write(meta.slot.index, 0);
        lane_1b.write(meta.slot.index, 0);
        lane_1c.write(meta.slot.index, 0);
        lane_1d.write(meta.slot.index, 0);
        lane_1e.write(meta.slot.index, 0);
        lane_1f.write(meta.slot.index, 0);
        lane_20.write(meta.slot.index, 0);
        lane_21.write(meta.slot.index, 0);
        lane_22.write(meta.slot.index, 0);
        lane_23.write(meta.slot.index, 0);
        lane_24.write(meta.slot.index, 0);
        lane_25.write(meta.slot.index, 0);
        lane_26.write(meta.slot.index, 0);
        lane_27.write(meta.slot.index, 0);
        lane_28.write(meta.slot.index, 0);
        lane_29.write(meta.slot.index, 0);
        lane_2a.write(meta.slot.index, 0);
        lane_2b.write(meta.slot.index, 0);
        lane_2c.write(meta.slot.index, 0);
        lane_2d.write(meta.slot.index, 0);
        lane_2e.write(meta.slot.index, 0);
        lane_2f.write(meta.slot.index, 0);
        lane_30.write(meta.slot.index, 0);
        lane_31.write(meta.slot.index, 0);
        lane_32.write(meta.slot.index, 0);
        lane_33.write(meta.slot.index, 0);
        lane_34.write(meta.slot.index, 0);
        lane_35.write(meta.slot.index, 0);
        lane_36.write(meta.slot.index, 0);
        lane_37.write(meta.slot.index, 0);
        lane_38.write(meta.slot.index, 0);
        lane_39.write(meta.slot.index, 0);
        lane_3a.write(meta.slot.index, 0);
        lane_3b.write(meta.slot.index, 0);
        lane_3c.write(meta.slot.index, 0);
        lane_3d.write(meta.slot.index, 0);
        lane_3e.write(meta.slot.index, 0);
        lane_3f.write(meta.slot.index, 0);
    }
    @hidden action fill() {
        hdr.lanes.setValid();
        lane_00.read(held, meta.slot.index);
        hdr.lanes.v00 = (lane_t)held;
        lane_01.read(held, meta.slot.index);
        hdr.lanes.v01 = (lane_t)held;
        lane_02.read(held, meta.slot.index);
        hdr.lanes.v02 = (lane_t)held;
        lane_03.read(held, meta.slot.index);
        hdr.lanes.v03 = (lane_t)held;
        lane_04.read(held, meta.slot.index);
        hdr.lanes.v04 = (lane_t)held;
        lane_05.read(held, meta.slot.index);
        hdr.lanes.v05 = (lane_t)held;
        lane_06.read(held, meta.slot.index);
        hdr.lanes.v06 = (lane_t)held;
        lane_07.read(held, meta.slot.index);
        hdr.lanes.v07 = (lane_t)held;
        lane_08.read(held, meta.slot.index);
        hdr.lanes.v08 = (lane_t)held;
        lane_09.read(held, meta.slot.index);
        hdr.lanes.v09 = (lane_t)held;
        lane_0a.read(held, meta.slot.index);
        hdr.lanes.v0a = (lane_t)held;
        lane_0b.read(held, meta.slot.index);
        hdr.lanes.v0b = (lane_t)held;
        lane_0c.read(held, meta.slot.index);
        hdr.lanes.v0c = (lane_t)held;
        lane_0d.read(held, meta.slot.index);
        hdr.lanes.v0d = (lane_t)held;
        lane_0e.read(held, meta.slot.index);
        hdr.lanes.v0e = (lane_t)held;
        lane_0f.read(held, meta.slot.index);
        hdr.lanes.v0f = (lane_t)held;
        lane_10.read(held, meta.slot.index);
        hdr.lanes.v10 = (lane_t)held;
        lane_11.read(held, meta.slot.index);
        hdr.lanes.v11 = (lane_t)held;
        lane_12.read(held, meta.slot.index);
        hdr.lanes.v12 = (lane_t)held;
        lane_13.read(held, meta.slot.index);
        hdr.lanes.v13 = (lane_t)held;
        lane_14.read(held, meta.slot.index);
        hdr.lanes.v14 = (lane_t)held;
        lane_15.read(held, meta.slot.index);
        hdr.lanes.v15 = (lane_t)held;
        lane_16.read(held, meta.slot.index);
        hdr.lanes.v16 = (lane_t)held;
        lane_17.read(held, meta.slot.index);
        hdr.lanes.v17 = (lane_t)held;
        lane_18.read(held, meta.slot.index);
        hdr.lanes.v18 = (lane_t)held;
        lane_19.read(held, meta.slot.index);
        hdr.lanes.v19 = (lane_t)held;
        lane_1a.read(held, meta.slot.index);
        hdr.lanes.v1a = (lane_t)held;
        lane_1b.read(held, meta.slot.index);
        hdr.lanes.v1b = (lane_t)held;
        lane_1c.read(held, meta.slot.index);
        hdr.lanes.v1c = (lane_t)held;
        lane_1d.read(held, meta.slot.index);
        hdr.lanes.v1d = (lane_t)held;
        lane_1e.read(held, meta.slot.index);
        hdr.lanes.v1e = (lane_t)held;
        lane_1f.read(held, meta.slot.index);
        hdr.lanes.v1f = (lane_t)held;
        lane_20.read(held, meta.slot.index);
        hdr.lanes.v20 = (lane_t)held;
        lane_21.read(held, meta.slot.index);
        hdr.lanes.v21 = (lane_t)held;
        lane_22.read(held, meta.slot.index);
        hdr.lanes.v22 = (lane_t)held;
        lane_23.read(held, meta.slot.index);
        hdr.lanes.v23 = (lane_t)held;
        lane_24.read(held, meta.slot.index);
        hdr.lanes.v24 = (lane_t)held;
        lane_25.read(held, meta.slot.index);
        hdr.lanes.v25 = (lane_t)held;
        lane_26.read(held, meta.slot.index);
        hdr.lanes.v26 = (lane_t)held;
        lane_27.read(held, meta.slot.index);
        hdr.lanes.v27 = (lane_t)held;
        lane_28.read(held, meta.slot.index);
        hdr.lanes.v28 = (lane_t)held;
        lane_29.read(held, meta.slot.index);
        hdr.lanes.v29 = (lane_t)held;
        lane_2a.read(held, meta.slot.index);
        hdr.lanes.v2a = (lane_t)held;
        lane_2b.read(held, meta.slot.index);
        hdr.lanes.v2b = (lane_t)held;
        lane_2c.read(held, meta.slot.index);
        hdr.lanes.v2c = (lane_t)held;
        lane_2d.read(held, meta.slot.index);
        hdr.lanes.v2d = (lane_t)held;
        lane_2e.read(held, meta.slot.index);
        hdr.lanes.v2e = (lane_t)held;
        lane_2f.read(held, meta.slot.index);
        hdr.lanes.v2f = (lane_t)held;
        lane_30.read(held, meta.slot.index);
        hdr.lanes.v30 = (lane_t)held;
        lane_31.read(held, meta.slot.index);
        hdr.lanes.v31 = (lane_t)held;
        lane_32.read(held, meta.slot.index);
        hdr.lanes.v32 = (lane_t)held;
        lane_33.read(held, meta.slot.index);
        hdr.lanes.v33 = (lane_t)held;
        lane_34.read(held, meta.slot.index);
        hdr.lanes.v34 = (lane_t)held;
        lane_35.read(held, meta.slot.index);
        hdr.lanes.v35 = (lane_t)held;
        lane_36.read(held, meta.slot.index);
        hdr.lanes.v36 = (lane_t)held;
        lane_37.read(held, meta.slot.index);
        hdr.lanes.v37 = (lane_t)held;
        lane_38.read(held, meta.slot.index);
        hdr.lanes.v38 = (lane_t)held;
        lane_39.read(held, meta.slot.index);
        hdr.lanes.v39 = (lane_t)held;
        lane_3a.read(held, meta.slot.index);
        hdr.lanes.v3a = (lane_t)held;
        lane_3b.read(held, meta.slot.index);
        hdr.lanes.v3b = (lane_t)held;
        lane_3c.read(held, meta.slot.index);
        hdr.lanes.v3c = (lane_t)held;
        lane_3d.read(held, meta.slot.index);
        hdr.lanes.v3d = (lane_t)held;
        lane_3e.read(held, meta.slot.index);
        hdr.lanes.v3e = (lane_t)held;
        lane_3f.read(held, meta.slot.index);
        hdr.lanes.v3f = (lane_t)held;
    }
    @hidden action flag_saturated() {
        if (hdr.lanes.v00 == LANE_MAX || hdr.lanes.v00 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v01 == LANE_MAX || hdr.lanes.v01 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v02 == LANE_MAX || hdr.lanes.v02 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v03 == LANE_MAX || hdr.lanes.v03 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v04 == LANE_MAX || hdr.lanes.v04 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v05 == LANE_MAX || hdr.lanes.v05 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v06 == LANE_MAX || hdr.lanes.v06 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v07 == LANE_MAX || hdr.lanes.v07 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v08 == LANE_MAX || hdr.lanes.v08 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v09 == LANE_MAX || hdr.lanes.v09 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v0a == LANE_MAX || hdr.lanes.v0a == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v0b == LANE_MAX || hdr.lanes.v0b == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v0c == LANE_MAX || hdr.lanes.v0c == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v0d == LANE_MAX || hdr.lanes.v0d == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v0e == LANE_MAX || hdr.lanes.v0e == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v0f == LANE_MAX || hdr.lanes.v0f == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v10 == LANE_MAX || hdr.lanes.v10 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v11 == LANE_MAX || hdr.lanes.v11 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v12 == LANE_MAX || hdr.lanes.v12 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v13 == LANE_MAX || hdr.lanes.v13 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v14 == LANE_MAX || hdr.lanes.v14 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v15 == LANE_MAX || hdr.lanes.v15 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v16 == LANE_MAX || hdr.lanes.v16 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v17 == LANE_MAX || hdr.lanes.v17 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v18 == LANE_MAX || hdr.lanes.v18 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v19 == LANE_MAX || hdr.lanes.v19 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v1a == LANE_MAX || hdr.lanes.v1a == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v1b == LANE_MAX || hdr.lanes.v1b == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v1c == LANE_MAX || hdr.lanes.v1c == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v1d == LANE_MAX || hdr.lanes.v1d == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v1e == LANE_MAX || hdr.lanes.v1e == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v1f == LANE_MAX || hdr.lanes.v1f == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v20 == LANE_MAX || hdr.lanes.v20 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v21 == LANE_MAX || hdr.lanes.v21 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v22 == LANE_MAX || hdr.lanes.v22 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v23 == LANE_MAX || hdr.lanes.v23 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v24 == LANE_MAX || hdr.lanes.v24 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v25 == LANE_MAX || hdr.lanes.v25 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v26 == LANE_MAX || hdr.lanes.v26 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v27 == LANE_MAX || hdr.lanes.v27 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v28 == LANE_MAX || hdr.lanes.v28 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v29 == LANE_MAX || hdr.lanes.v29 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v2a == LANE_MAX || hdr.lanes.v2a == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v2b == LANE_MAX || hdr.lanes.v2b == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v2c == LANE_MAX || hdr.lanes.v2c == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v2d == LANE_MAX || hdr.lanes.v2d == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v2e == LANE_MAX || hdr.lanes.v2e == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v2f == LANE_MAX || hdr.lanes.v2f == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v30 == LANE_MAX || hdr.lanes.v30 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v31 == LANE_MAX || hdr.lanes.v31 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v32 == LANE_MAX || hdr.lanes.v32 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v33 == LANE_MAX || hdr.lanes.v33 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v34 == LANE_MAX || hdr.lanes.v34 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v35 == LANE_MAX || hdr.lanes.v35 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v36 == LANE_MAX || hdr.lanes.v36 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v37 == LANE_MAX || hdr.lanes.v37 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v38 == LANE_MAX || hdr.lanes.v38 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v39 == LANE_MAX || hdr.lanes.v39 == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v3a == LANE_MAX || hdr.lanes.v3a == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v3b == LANE_MAX || hdr.lanes.v3b == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v3c == LANE_MAX || hdr.lanes.v3c == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v3d == LANE_MAX || hdr.lanes.v3d == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v3e == LANE_MAX || hdr.lanes.v3e == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
        if (hdr.lanes.v3f == LANE_MAX || hdr.lanes.v3f == LANE_MIN) {
            hdr.netfold.flags = hdr.netfold.flags | FLAG_OVERFLOW;
        }
    }
    @hidden table access {
        key = {
            meta.role             : ternary;
            meta.slot.age         : ternary;
            meta.slot.own_bit_seen: ternary;
        }
        actions = {
            claim;
            add;
            read;
            NoAction;
        }
        const entries = {
                        (role_t.MANAGEMENT, default, default) : read();
                        (default, age_t.NEWER, default) : claim();
                        (default, age_t.SAME, 0) : add();
                        (default, age_t.SAME, default) : read();
        }
        const default_action = NoAction();
    }
    bit<32> f_large;
    bit<32> f_small;
    bit<32> f_exponent;
    bit<32> f_bits;
    bit<32> f_distance;
    bit<32> f_less;
    bit<32> f_sum;
    bit<32> lane;
    @hidden action add_floats_0() {
        lane_00.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v00;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_00.write(meta.slot.index, f_sum);
        hdr.lanes.v00 = (lane_t)f_sum;
        lane_01.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v01;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_01.write(meta.slot.index, f_sum);
        hdr.lanes.v01 = (lane_t)f_sum;
        lane_02.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v02;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_02.write(meta.slot.index, f_sum);
        hdr.lanes.v02 = (lane_t)f_sum;
        lane_03.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v03;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_03.write(meta.slot.index, f_sum);
        hdr.lanes.v03 = (lane_t)f_sum;
        lane_04.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v04;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_04.write(meta.slot.index, f_sum);
        hdr.lanes.v04 = (lane_t)f_sum;
        lane_05.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v05;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_05.write(meta.slot.index, f_sum);
        hdr.lanes.v05 = (lane_t)f_sum;
        lane_06.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v06;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_06.write(meta.slot.index, f_sum);
        hdr.lanes.v06 = (lane_t)f_sum;
        lane_07.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v07;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_07.write(meta.slot.index, f_sum);
        hdr.lanes.v07 = (lane_t)f_sum;
        lane_08.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v08;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_08.write(meta.slot.index, f_sum);
        hdr.lanes.v08 = (lane_t)f_sum;
        lane_09.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v09;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_09.write(meta.slot.index, f_sum);
        hdr.lanes.v09 = (lane_t)f_sum;
        lane_0a.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v0a;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_0a.write(meta.slot.index, f_sum);
        hdr.lanes.v0a = (lane_t)f_sum;
        lane_0b.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v0b;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_0b.write(meta.slot.index, f_sum);
        hdr.lanes.v0b = (lane_t)f_sum;
        lane_0c.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v0c;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_0c.write(meta.slot.index, f_sum);
        hdr.lanes.v0c = (lane_t)f_sum;
        lane_0d.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v0d;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_0d.write(meta.slot.index, f_sum);
        hdr.lanes.v0d = (lane_t)f_sum;
        lane_0e.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v0e;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_0e.write(meta.slot.index, f_sum);
        hdr.lanes.v0e = (lane_t)f_sum;
        lane_0f.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v0f;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_0f.write(meta.slot.index, f_sum);
        hdr.lanes.v0f = (lane_t)f_sum;
    }
    @hidden action add_floats_1() {
        lane_10.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v10;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_10.write(meta.slot.index, f_sum);
        hdr.lanes.v10 = (lane_t)f_sum;
        lane_11.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v11;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_11.write(meta.slot.index, f_sum);
        hdr.lanes.v11 = (lane_t)f_sum;
        lane_12.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v12;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_12.write(meta.slot.index, f_sum);
        hdr.lanes.v12 = (lane_t)f_sum;
        lane_13.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v13;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_13.write(meta.slot.index, f_sum);
        hdr.lanes.v13 = (lane_t)f_sum;
        lane_14.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v14;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_14.write(meta.slot.index, f_sum);
        hdr.lanes.v14 = (lane_t)f_sum;
        lane_15.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v15;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_15.write(meta.slot.index, f_sum);
        hdr.lanes.v15 = (lane_t)f_sum;
        lane_16.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v16;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_16.write(meta.slot.index, f_sum);
        hdr.lanes.v16 = (lane_t)f_sum;
        lane_17.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v17;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_17.write(meta.slot.index, f_sum);
        hdr.lanes.v17 = (lane_t)f_sum;
        lane_18.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v18;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_18.write(meta.slot.index, f_sum);
        hdr.lanes.v18 = (lane_t)f_sum;
        lane_19.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v19;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_19.write(meta.slot.index, f_sum);
        hdr.lanes.v19 = (lane_t)f_sum;
        lane_1a.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v1a;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_1a.write(meta.slot.index, f_sum);
        hdr.lanes.v1a = (lane_t)f_sum;
        lane_1b.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v1b;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_1b.write(meta.slot.index, f_sum);
        hdr.lanes.v1b = (lane_t)f_sum;
        lane_1c.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v1c;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_1c.write(meta.slot.index, f_sum);
        hdr.lanes.v1c = (lane_t)f_sum;
        lane_1d.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v1d;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_1d.write(meta.slot.index, f_sum);
        hdr.lanes.v1d = (lane_t)f_sum;
        lane_1e.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v1e;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_1e.write(meta.slot.index, f_sum);
        hdr.lanes.v1e = (lane_t)f_sum;
        lane_1f.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v1f;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_1f.write(meta.slot.index, f_sum);
        hdr.lanes.v1f = (lane_t)f_sum;
    }
    @hidden action add_floats_2() {
        lane_20.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v20;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_20.write(meta.slot.index, f_sum);
        hdr.lanes.v20 = (lane_t)f_sum;
        lane_21.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v21;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_21.write(meta.slot.index, f_sum);
        hdr.lanes.v21 = (lane_t)f_sum;
        lane_22.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v22;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_22.write(meta.slot.index, f_sum);
        hdr.lanes.v22 = (lane_t)f_sum;
        lane_23.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v23;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_23.write(meta.slot.index, f_sum);
        hdr.lanes.v23 = (lane_t)f_sum;
        lane_24.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v24;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_24.write(meta.slot.index, f_sum);
        hdr.lanes.v24 = (lane_t)f_sum;
        lane_25.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v25;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_25.write(meta.slot.index, f_sum);
        hdr.lanes.v25 = (lane_t)f_sum;
        lane_26.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v26;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_26.write(meta.slot.index, f_sum);
        hdr.lanes.v26 = (lane_t)f_sum;
        lane_27.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v27;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_27.write(meta.slot.index, f_sum);
        hdr.lanes.v27 = (lane_t)f_sum;
        lane_28.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v28;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_28.write(meta.slot.index, f_sum);
        hdr.lanes.v28 = (lane_t)f_sum;
        lane_29.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v29;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_29.write(meta.slot.index, f_sum);
        hdr.lanes.v29 = (lane_t)f_sum;
        lane_2a.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v2a;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_2a.write(meta.slot.index, f_sum);
        hdr.lanes.v2a = (lane_t)f_sum;
        lane_2b.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v2b;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_2b.write(meta.slot.index, f_sum);
        hdr.lanes.v2b = (lane_t)f_sum;
        lane_2c.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v2c;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_2c.write(meta.slot.index, f_sum);
        hdr.lanes.v2c = (lane_t)f_sum;
        lane_2d.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v2d;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_2d.write(meta.slot.index, f_sum);
        hdr.lanes.v2d = (lane_t)f_sum;
        lane_2e.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v2e;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_2e.write(meta.slot.index, f_sum);
        hdr.lanes.v2e = (lane_t)f_sum;
        lane_2f.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v2f;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_2f.write(meta.slot.index, f_sum);
        hdr.lanes.v2f = (lane_t)f_sum;
    }
    @hidden action add_floats_3() {
        lane_30.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v30;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_30.write(meta.slot.index, f_sum);
        hdr.lanes.v30 = (lane_t)f_sum;
        lane_31.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v31;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_31.write(meta.slot.index, f_sum);
        hdr.lanes.v31 = (lane_t)f_sum;
        lane_32.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v32;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_32.write(meta.slot.index, f_sum);
        hdr.lanes.v32 = (lane_t)f_sum;
        lane_33.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v33;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_33.write(meta.slot.index, f_sum);
        hdr.lanes.v33 = (lane_t)f_sum;
        lane_34.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v34;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_34.write(meta.slot.index, f_sum);
        hdr.lanes.v34 = (lane_t)f_sum;
        lane_35.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v35;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_35.write(meta.slot.index, f_sum);
        hdr.lanes.v35 = (lane_t)f_sum;
        lane_36.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v36;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_36.write(meta.slot.index, f_sum);
        hdr.lanes.v36 = (lane_t)f_sum;
        lane_37.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v37;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_37.write(meta.slot.index, f_sum);
        hdr.lanes.v37 = (lane_t)f_sum;
        lane_38.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v38;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_38.write(meta.slot.index, f_sum);
        hdr.lanes.v38 = (lane_t)f_sum;
        lane_39.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v39;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_39.write(meta.slot.index, f_sum);
        hdr.lanes.v39 = (lane_t)f_sum;
        lane_3a.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v3a;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_3a.write(meta.slot.index, f_sum);
        hdr.lanes.v3a = (lane_t)f_sum;
        lane_3b.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v3b;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_3b.write(meta.slot.index, f_sum);
        hdr.lanes.v3b = (lane_t)f_sum;
        lane_3c.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v3c;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_3c.write(meta.slot.index, f_sum);
        hdr.lanes.v3c = (lane_t)f_sum;
        lane_3d.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v3d;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_3d.write(meta.slot.index, f_sum);
        hdr.lanes.v3d = (lane_t)f_sum;
        lane_3e.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v3e;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_3e.write(meta.slot.index, f_sum);
        hdr.lanes.v3e = (lane_t)f_sum;
        lane_3f.read(held, meta.slot.index);
        lane = (bit<32>)hdr.lanes.v3f;
        f_large = held;
        f_small = lane;
        if (f_large & FLOAT_MAGNITUDE < f_small & FLOAT_MAGNITUDE) {
            f_large = lane;
            f_small = held;
        }
        f_exponent = (f_large & FLOAT_MAGNITUDE) >> 23;
        f_bits = (f_large & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_exponent > 0) << 26;
        f_exponent = f_exponent + (bit<32>)(bit<1>)(f_exponent < 1);
        f_distance = (f_small & FLOAT_MAGNITUDE) >> 23;
        f_less = (f_small & FLOAT_FRACTION) << 3 | (bit<32>)(bit<1>)(f_distance > 0) << 26;
        f_distance = f_distance + (bit<32>)(bit<1>)(f_distance < 1);
        f_distance = f_exponent - f_distance;
        if (f_distance > 31) {
            f_distance = 31;
        }
        f_sum = f_less >> (bit<5>)f_distance;
        if (f_sum << (bit<5>)f_distance != f_less) {
            f_sum = f_sum | 1;
        }
        if (f_large ^ f_small < FLOAT_SIGN) {
            f_bits = f_bits + f_sum;
        } else {
            f_bits = f_bits - f_sum;
        }
        if (f_bits < 32w1 << 28 - 16 && f_exponent >= 16) {
            f_bits = f_bits << 16;
            f_exponent = f_exponent - 16;
        }
        if (f_bits < 32w1 << 28 - 8 && f_exponent >= 8) {
            f_bits = f_bits << 8;
            f_exponent = f_exponent - 8;
        }
        if (f_bits < 32w1 << 28 - 4 && f_exponent >= 4) {
            f_bits = f_bits << 4;
            f_exponent = f_exponent - 4;
        }
        if (f_bits < 32w1 << 28 - 2 && f_exponent >= 2) {
            f_bits = f_bits << 2;
            f_exponent = f_exponent - 2;
        }
        if (f_bits < 32w1 << 28 - 1 && f_exponent >= 1) {
            f_bits = f_bits << 1;
            f_exponent = f_exponent - 1;
        }
        f_sum = (f_exponent << 23) + (f_bits + 7 + (f_bits >> 4 & 1) >> 4);
        if (f_exponent >= 254 || f_large & FLOAT_MAGNITUDE == FLOAT_INFINITY) {
            f_sum = FLOAT_INFINITY;
        }
        if (f_bits == 0) {
            f_sum = f_large & f_small & FLOAT_SIGN;
        } else {
            f_sum = f_sum | f_large & FLOAT_SIGN;
        }
        if (f_large & FLOAT_MAGNITUDE > FLOAT_INFINITY || f_small & FLOAT_MAGNITUDE == FLOAT_INFINITY && f_large != f_small) {
            f_sum = FLOAT_NAN;
        }
        lane_3f.write(meta.slot.index, f_sum);
        hdr.lanes.v3f = (lane_t)f_sum;
    }
    apply {
        bool is_float = hdr.netfold.flags & FLAG_FLOATS != 0;
        if (meta.is_short == 1) {
            if (meta.slot.age == age_t.NEWER) {
                clear();
            } else if (meta.slot.age == age_t.SAME && meta.slot.is_complete == 1) {
                fill();
            }
        } else if (ADDS_FLOATS && is_float && meta.role != role_t.MANAGEMENT && meta.slot.age == age_t.SAME && meta.slot.own_bit_seen == 0) {
            add_floats_0();
            add_floats_1();
            add_floats_2();
            add_floats_3();
        } else {
            access.apply();
        }
        if (!is_float && hdr.lanes.isValid() && (meta.role == role_t.MANAGEMENT || meta.slot.is_complete == 1)) {
            flag_saturated();
        }
    }
}

parser TransportParser(packet_in packet, inout headers_t hdr) {
    state start {
        transition select(hdr.udp.dst_port) {
            ROCE_UDP_PORT: check_lengths;
            default: accept;
        }
    }
    state check_lengths {
        transition select(hdr.ipv4.ihl, hdr.ipv4.total_length, hdr.udp.length) {
            (5, 28 + NETFOLD_BYTES, 8 + NETFOLD_BYTES): parse_send;
            (5, default, 0 &&& 0xfff0): accept;
            (5, default, 16 &&& 0xfffc): accept;
            (5, default, default): parse_bth;
            default: accept;
        }
    }
    state parse_bth {
        packet.extract(hdr.bth);
        transition accept;
    }
    state parse_send {
        packet.extract(hdr.bth);
        transition select(hdr.bth.opcode, hdr.bth.pad, hdr.bth.version) {
            (SEND_FIRST, 0, 0): parse_lanes;
            (SEND_MIDDLE, 0, 0): parse_lanes;
            (SEND_LAST, 0, 0): parse_lanes;
            (SEND_ONLY, 0, 0): parse_lanes;
            default: accept;
        }
    }
    state parse_lanes {
        packet.extract(hdr.lanes);
        packet.extract(hdr.icrc);
        transition accept;
    }
}

control RoceToGradient(inout headers_t hdr, inout metadata_t meta) {
    bit<16> job_port;
    tree_t job_tree;
    child_t sender;
    tag_t tag;
    slot_t slot;
    flags_t number_flags;
    ipv4_t root_address;
    port_t next_worker;
    port_t peer_port;
    ipv4_t peer_address;
    qpn_t qpn;
    psn_t chunk;
    bit<32> crc;
    @brief("A worker's connection to its successor: its SENDs are the contributions of the child. flags: 0, or FLAG_FLOATS.") action contribute(bit<16> udp_port, tree_t tree, child_t child, bit<12> epoch, @format(IPV4_ADDRESS) ipv4_t root, psn_t first_psn, bit<5> log2_slots, @refers_to(neighbors , port) port_t successor_port, flags_t flags) {
        chunk = hdr.bth.psn - first_psn;
        tag = (chunk[23:23] == 0 ? epoch : 0) ++ (bit<20>)(chunk >> log2_slots);
        slot = (slot_t)(chunk & (24w1 << log2_slots) - 1);
        job_tree = tree;
        sender = child;
        number_flags = flags;
        job_port = udp_port;
        root_address = root;
        next_worker = successor_port;
    }
    @id(12) table connections {
        key = {
            meta.ingress_port: exact @name("ingress_port");
            hdr.ipv4.src     : exact @name("src") @format(IPV4_ADDRESS);
            hdr.ipv4.dst     : exact @name("dst") @format(IPV4_ADDRESS);
            qpn              : exact @name("qpn");
        }
        actions = {
            contribute;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }
    @brief("A queue pair of a job: admits RoCE by this port from this address alone.") action set_peer(port_t port, @format(IPV4_ADDRESS) ipv4_t src) {
        peer_port = port;
        peer_address = src;
    }
    @id(13) @brief("QPN 0: a packet whose QPN is not parsed.") table reserved_qps {
        key = {
            hdr.ipv4.dst: exact @name("dst") @format(IPV4_ADDRESS);
            qpn         : exact @name("qpn");
        }
        actions = {
            set_peer;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 2 * 1024;
    }
    @hidden action compute_icrc() {
        hash(crc, HashAlgorithm.crc32, 32w0, { 64w0xffffffffffffffff, hdr.ipv4.version ++ hdr.ipv4.ihl ++ 8w0xff ++ hdr.ipv4.total_length ++ hdr.ipv4.identification ++ hdr.ipv4.reserved ++ hdr.ipv4.dont_fragment ++ hdr.ipv4.more_fragments ++ hdr.ipv4.fragment_offset, 8w0xff ++ hdr.ipv4.protocol ++ 16w0xffff ++ hdr.ipv4.src, hdr.ipv4.dst ++ hdr.udp.src_port ++ hdr.udp.dst_port, hdr.udp.length ++ 16w0xffff ++ hdr.bth.opcode ++ hdr.bth.solicited ++ hdr.bth.migrated ++ hdr.bth.pad ++ hdr.bth.version ++ hdr.bth.partition, 8w0xff ++ hdr.bth.qpn ++ hdr.bth.ack_request ++ hdr.bth.reserved ++ hdr.bth.psn, hdr.lanes }, 64w0x100000000);
    }
    @hidden action become_gradient() {
        hdr.netfold = { NETFOLD_VERSION, kind_t.GRADIENT, number_flags, job_tree, tag, slot, sender, 0, 1w1 ++ hdr.bth.ack_request ++ hdr.bth.solicited ++ hdr.bth.opcode[4:0], 64 };
        hdr.udp.src_port = job_port;
        hdr.udp.dst_port = job_port;
        hdr.ipv4.dst = root_address;
        hdr.bth.setInvalid();
        hdr.icrc.setInvalid();
        meta.ingress_port = meta.ingress_port | ROCE_SIDE;
        meta.reply_port = next_worker;
        meta.wellformed = 1;
    }
    @hidden action swap_lane_bytes() {
        hdr.lanes.v00 = (lane_t)((bit<32>)hdr.lanes.v00 << 24 | ((bit<32>)hdr.lanes.v00 & 0xff00) << 8 | (bit<32>)hdr.lanes.v00 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v00 >> 24);
        hdr.lanes.v01 = (lane_t)((bit<32>)hdr.lanes.v01 << 24 | ((bit<32>)hdr.lanes.v01 & 0xff00) << 8 | (bit<32>)hdr.lanes.v01 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v01 >> 24);
        hdr.lanes.v02 = (lane_t)((bit<32>)hdr.lanes.v02 << 24 | ((bit<32>)hdr.lanes.v02 & 0xff00) << 8 | (bit<32>)hdr.lanes.v02 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v02 >> 24);
        hdr.lanes.v03 = (lane_t)((bit<32>)hdr.lanes.v03 << 24 | ((bit<32>)hdr.lanes.v03 & 0xff00) << 8 | (bit<32>)hdr.lanes.v03 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v03 >> 24);
        hdr.lanes.v04 = (lane_t)((bit<32>)hdr.lanes.v04 << 24 | ((bit<32>)hdr.lanes.v04 & 0xff00) << 8 | (bit<32>)hdr.lanes.v04 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v04 >> 24);
        hdr.lanes.v05 = (lane_t)((bit<32>)hdr.lanes.v05 << 24 | ((bit<32>)hdr.lanes.v05 & 0xff00) << 8 | (bit<32>)hdr.lanes.v05 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v05 >> 24);
        hdr.lanes.v06 = (lane_t)((bit<32>)hdr.lanes.v06 << 24 | ((bit<32>)hdr.lanes.v06 & 0xff00) << 8 | (bit<32>)hdr.lanes.v06 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v06 >> 24);
        hdr.lanes.v07 = (lane_t)((bit<32>)hdr.lanes.v07 << 24 | ((bit<32>)hdr.lanes.v07 & 0xff00) << 8 | (bit<32>)hdr.lanes.v07 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v07 >> 24);
        hdr.lanes.v08 = (lane_t)((bit<32>)hdr.lanes.v08 << 24 | ((bit<32>)hdr.lanes.v08 & 0xff00) << 8 | (bit<32>)hdr.lanes.v08 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v08 >> 24);
        hdr.lanes.v09 = (lane_t)((bit<32>)hdr.lanes.v09 << 24 | ((bit<32>)hdr.lanes.v09 & 0xff00) << 8 | (bit<32>)hdr.lanes.v09 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v09 >> 24);
        hdr.lanes.v0a = (lane_t)((bit<32>)hdr.lanes.v0a << 24 | ((bit<32>)hdr.lanes.v0a & 0xff00) << 8 | (bit<32>)hdr.lanes.v0a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0a >> 24);
        hdr.lanes.v0b = (lane_t)((bit<32>)hdr.lanes.v0b << 24 | ((bit<32>)hdr.lanes.v0b & 0xff00) << 8 | (bit<32>)hdr.lanes.v0b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0b >> 24);
        hdr.lanes.v0c = (lane_t)((bit<32>)hdr.lanes.v0c << 24 | ((bit<32>)hdr.lanes.v0c & 0xff00) << 8 | (bit<32>)hdr.lanes.v0c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0c >> 24);
        hdr.lanes.v0d = (lane_t)((bit<32>)hdr.lanes.v0d << 24 | ((bit<32>)hdr.lanes.v0d & 0xff00) << 8 | (bit<32>)hdr.lanes.v0d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0d >> 24);
        hdr.lanes.v0e = (lane_t)((bit<32>)hdr.lanes.v0e << 24 | ((bit<32>)hdr.lanes.v0e & 0xff00) << 8 | (bit<32>)hdr.lanes.v0e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0e >> 24);
        hdr.lanes.v0f = (lane_t)((bit<32>)hdr.lanes.v0f << 24 | ((bit<32>)hdr.lanes.v0f & 0xff00) << 8 | (bit<32>)hdr.lanes.v0f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0f >> 24);
        hdr.lanes.v10 = (lane_t)((bit<32>)hdr.lanes.v10 << 24 | ((bit<32>)hdr.lanes.v10 & 0xff00) << 8 | (bit<32>)hdr.lanes.v10 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v10 >> 24);
        hdr.lanes.v11 = (lane_t)((bit<32>)hdr.lanes.v11 << 24 | ((bit<32>)hdr.lanes.v11 & 0xff00) << 8 | (bit<32>)hdr.lanes.v11 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v11 >> 24);
        hdr.lanes.v12 = (lane_t)((bit<32>)hdr.lanes.v12 << 24 | ((bit<32>)hdr.lanes.v12 & 0xff00) << 8 | (bit<32>)hdr.lanes.v12 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v12 >> 24);
        hdr.lanes.v13 = (lane_t)((bit<32>)hdr.lanes.v13 << 24 | ((bit<32>)hdr.lanes.v13 & 0xff00) << 8 | (bit<32>)hdr.lanes.v13 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v13 >> 24);
        hdr.lanes.v14 = (lane_t)((bit<32>)hdr.lanes.v14 << 24 | ((bit<32>)hdr.lanes.v14 & 0xff00) << 8 | (bit<32>)hdr.lanes.v14 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v14 >> 24);
        hdr.lanes.v15 = (lane_t)((bit<32>)hdr.lanes.v15 << 24 | ((bit<32>)hdr.lanes.v15 & 0xff00) << 8 | (bit<32>)hdr.lanes.v15 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v15 >> 24);
        hdr.lanes.v16 = (lane_t)((bit<32>)hdr.lanes.v16 << 24 | ((bit<32>)hdr.lanes.v16 & 0xff00) << 8 | (bit<32>)hdr.lanes.v16 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v16 >> 24);
        hdr.lanes.v17 = (lane_t)((bit<32>)hdr.lanes.v17 << 24 | ((bit<32>)hdr.lanes.v17 & 0xff00) << 8 | (bit<32>)hdr.lanes.v17 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v17 >> 24);
        hdr.lanes.v18 = (lane_t)((bit<32>)hdr.lanes.v18 << 24 | ((bit<32>)hdr.lanes.v18 & 0xff00) << 8 | (bit<32>)hdr.lanes.v18 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v18 >> 24);
        hdr.lanes.v19 = (lane_t)((bit<32>)hdr.lanes.v19 << 24 | ((bit<32>)hdr.lanes.v19 & 0xff00) << 8 | (bit<32>)hdr.lanes.v19 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v19 >> 24);
        hdr.lanes.v1a = (lane_t)((bit<32>)hdr.lanes.v1a << 24 | ((bit<32>)hdr.lanes.v1a & 0xff00) << 8 | (bit<32>)hdr.lanes.v1a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1a >> 24);
        hdr.lanes.v1b = (lane_t)((bit<32>)hdr.lanes.v1b << 24 | ((bit<32>)hdr.lanes.v1b & 0xff00) << 8 | (bit<32>)hdr.lanes.v1b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1b >> 24);
        hdr.lanes.v1c = (lane_t)((bit<32>)hdr.lanes.v1c << 24 | ((bit<32>)hdr.lanes.v1c & 0xff00) << 8 | (bit<32>)hdr.lanes.v1c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1c >> 24);
        hdr.lanes.v1d = (lane_t)((bit<32>)hdr.lanes.v1d << 24 | ((bit<32>)hdr.lanes.v1d & 0xff00) << 8 | (bit<32>)hdr.lanes.v1d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1d >> 24);
        hdr.lanes.v1e = (lane_t)((bit<32>)hdr.lanes.v1e << 24 | ((bit<32>)hdr.lanes.v1e & 0xff00) << 8 | (bit<32>)hdr.lanes.v1e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1e >> 24);
        hdr.lanes.v1f = (lane_t)((bit<32>)hdr.lanes.v1f << 24 | ((bit<32>)hdr.lanes.v1f & 0xff00) << 8 | (bit<32>)hdr.lanes.v1f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1f >> 24);
        hdr.lanes.v20 = (lane_t)((bit<32>)hdr.lanes.v20 << 24 | ((bit<32>)hdr.lanes.v20 & 0xff00) << 8 | (bit<32>)hdr.lanes.v20 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v20 >> 24);
        hdr.lanes.v21 = (lane_t)((bit<32>)hdr.lanes.v21 << 24 | ((bit<32>)hdr.lanes.v21 & 0xff00) << 8 | (bit<32>)hdr.lanes.v21 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v21 >> 24);
        hdr.lanes.v22 = (lane_t)((bit<32>)hdr.lanes.v22 << 24 | ((bit<32>)hdr.lanes.v22 & 0xff00) << 8 | (bit<32>)hdr.lanes.v22 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v22 >> 24);
        hdr.lanes.v23 = (lane_t)((bit<32>)hdr.lanes.v23 << 24 | ((bit<32>)hdr.lanes.v23 & 0xff00) << 8 | (bit<32>)hdr.lanes.v23 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v23 >> 24);
        hdr.lanes.v24 = (lane_t)((bit<32>)hdr.lanes.v24 << 24 | ((bit<32>)hdr.lanes.v24 & 0xff00) << 8 | (bit<32>)hdr.lanes.v24 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v24 >> 24);
        hdr.lanes.v25 = (lane_t)((bit<32>)hdr.lanes.v25 << 24 | ((bit<32>)hdr.lanes.v25 & 0xff00) << 8 | (bit<32>)hdr.lanes.v25 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v25 >> 24);
        hdr.lanes.v26 = (lane_t)((bit<32>)hdr.lanes.v26 << 24 | ((bit<32>)hdr.lanes.v26 & 0xff00) << 8 | (bit<32>)hdr.lanes.v26 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v26 >> 24);
        hdr.lanes.v27 = (lane_t)((bit<32>)hdr.lanes.v27 << 24 | ((bit<32>)hdr.lanes.v27 & 0xff00) << 8 | (bit<32>)hdr.lanes.v27 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v27 >> 24);
        hdr.lanes.v28 = (lane_t)((bit<32>)hdr.lanes.v28 << 24 | ((bit<32>)hdr.lanes.v28 & 0xff00) << 8 | (bit<32>)hdr.lanes.v28 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v28 >> 24);
        hdr.lanes.v29 = (lane_t)((bit<32>)hdr.lanes.v29 << 24 | ((bit<32>)hdr.lanes.v29 & 0xff00) << 8 | (bit<32>)hdr.lanes.v29 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v29 >> 24);
        hdr.lanes.v2a = (lane_t)((bit<32>)hdr.lanes.v2a << 24 | ((bit<32>)hdr.lanes.v2a & 0xff00) << 8 | (bit<32>)hdr.lanes.v2a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2a >> 24);
        hdr.lanes.v2b = (lane_t)((bit<32>)hdr.lanes.v2b << 24 | ((bit<32>)hdr.lanes.v2b & 0xff00) << 8 | (bit<32>)hdr.lanes.v2b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2b >> 24);
        hdr.lanes.v2c = (lane_t)((bit<32>)hdr.lanes.v2c << 24 | ((bit<32>)hdr.lanes.v2c & 0xff00) << 8 | (bit<32>)hdr.lanes.v2c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2c >> 24);
        hdr.lanes.v2d = (lane_t)((bit<32>)hdr.lanes.v2d << 24 | ((bit<32>)hdr.lanes.v2d & 0xff00) << 8 | (bit<32>)hdr.lanes.v2d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2d >> 24);
        hdr.lanes.v2e = (lane_t)((bit<32>)hdr.lanes.v2e << 24 | ((bit<32>)hdr.lanes.v2e & 0xff00) << 8 | (bit<32>)hdr.lanes.v2e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2e >> 24);
        hdr.lanes.v2f = (lane_t)((bit<32>)hdr.lanes.v2f << 24 | ((bit<32>)hdr.lanes.v2f & 0xff00) << 8 | (bit<32>)hdr.lanes.v2f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2f >> 24);
        hdr.lanes.v30 = (lane_t)((bit<32>)hdr.lanes.v30 << 24 | ((bit<32>)hdr.lanes.v30 & 0xff00) << 8 | (bit<32>)hdr.lanes.v30 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v30 >> 24);
        hdr.lanes.v31 = (lane_t)((bit<32>)hdr.lanes.v31 << 24 | ((bit<32>)hdr.lanes.v31 & 0xff00) << 8 | (bit<32>)hdr.lanes.v31 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v31 >> 24);
        hdr.lanes.v32 = (lane_t)((bit<32>)hdr.lanes.v32 << 24 | ((bit<32>)hdr.lanes.v32 & 0xff00) << 8 | (bit<32>)hdr.lanes.v32 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v32 >> 24);
        hdr.lanes.v33 = (lane_t)((bit<32>)hdr.lanes.v33 << 24 | ((bit<32>)hdr.lanes.v33 & 0xff00) << 8 | (bit<32>)hdr.lanes.v33 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v33 >> 24);
        hdr.lanes.v34 = (lane_t)((bit<32>)hdr.lanes.v34 << 24 | ((bit<32>)hdr.lanes.v34 & 0xff00) << 8 | (bit<32>)hdr.lanes.v34 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v34 >> 24);
        hdr.lanes.v35 = (lane_t)((bit<32>)hdr.lanes.v35 << 24 | ((bit<32>)hdr.lanes.v35 & 0xff00) << 8 | (bit<32>)hdr.lanes.v35 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v35 >> 24);
        hdr.lanes.v36 = (lane_t)((bit<32>)hdr.lanes.v36 << 24 | ((bit<32>)hdr.lanes.v36 & 0xff00) << 8 | (bit<32>)hdr.lanes.v36 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v36 >> 24);
        hdr.lanes.v37 = (lane_t)((bit<32>)hdr.lanes.v37 << 24 | ((bit<32>)hdr.lanes.v37 & 0xff00) << 8 | (bit<32>)hdr.lanes.v37 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v37 >> 24);
        hdr.lanes.v38 = (lane_t)((bit<32>)hdr.lanes.v38 << 24 | ((bit<32>)hdr.lanes.v38 & 0xff00) << 8 | (bit<32>)hdr.lanes.v38 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v38 >> 24);
        hdr.lanes.v39 = (lane_t)((bit<32>)hdr.lanes.v39 << 24 | ((bit<32>)hdr.lanes.v39 & 0xff00) << 8 | (bit<32>)hdr.lanes.v39 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v39 >> 24);
        hdr.lanes.v3a = (lane_t)((bit<32>)hdr.lanes.v3a << 24 | ((bit<32>)hdr.lanes.v3a & 0xff00) << 8 | (bit<32>)hdr.lanes.v3a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3a >> 24);
        hdr.lanes.v3b = (lane_t)((bit<32>)hdr.lanes.v3b << 24 | ((bit<32>)hdr.lanes.v3b & 0xff00) << 8 | (bit<32>)hdr.lanes.v3b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3b >> 24);
        hdr.lanes.v3c = (lane_t)((bit<32>)hdr.lanes.v3c << 24 | ((bit<32>)hdr.lanes.v3c & 0xff00) << 8 | (bit<32>)hdr.lanes.v3c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3c >> 24);
        hdr.lanes.v3d = (lane_t)((bit<32>)hdr.lanes.v3d << 24 | ((bit<32>)hdr.lanes.v3d & 0xff00) << 8 | (bit<32>)hdr.lanes.v3d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3d >> 24);
        hdr.lanes.v3e = (lane_t)((bit<32>)hdr.lanes.v3e << 24 | ((bit<32>)hdr.lanes.v3e & 0xff00) << 8 | (bit<32>)hdr.lanes.v3e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3e >> 24);
        hdr.lanes.v3f = (lane_t)((bit<32>)hdr.lanes.v3f << 24 | ((bit<32>)hdr.lanes.v3f & 0xff00) << 8 | (bit<32>)hdr.lanes.v3f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3f >> 24);
    }
    apply {
        qpn = 0;
        if (hdr.bth.isValid()) {
            qpn = hdr.bth.qpn;
        }
        if (connections.apply().hit) {
            if (hdr.icrc.isValid()) {
                meta.netfold = 1;
                compute_icrc();
                if (crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24] == hdr.icrc.crc) {
                    become_gradient();
                    if (ADDS_FLOATS && number_flags & FLAG_FLOATS != 0) {
                        swap_lane_bytes();
                    }
                }
            } else if (hdr.bth.opcode <= MAX_SEND_OPCODE || hdr.bth.opcode & INVALIDATE_MASK == SEND_INVALIDATE) {
                meta.netfold = 1;
            }
        } else if (reserved_qps.apply().hit) {
            if (meta.ingress_port != peer_port || hdr.ipv4.src != peer_address) {
                meta.netfold = 1;
                if (qpn != 0) {
                    meta.verdict = verdict_t.UNADMITTED;
                }
            }
        }
    }
}

control ResultToRoce(inout headers_t hdr, in standard_metadata_t standard) {
    bit<32> crc;
    @hidden action compute_icrc() {
        hash(crc, HashAlgorithm.crc32, 32w0, { 64w0xffffffffffffffff, hdr.ipv4.version ++ hdr.ipv4.ihl ++ 8w0xff ++ hdr.ipv4.total_length ++ hdr.ipv4.identification ++ hdr.ipv4.reserved ++ hdr.ipv4.dont_fragment ++ hdr.ipv4.more_fragments ++ hdr.ipv4.fragment_offset, 8w0xff ++ hdr.ipv4.protocol ++ 16w0xffff ++ hdr.ipv4.src, hdr.ipv4.dst ++ hdr.udp.src_port ++ hdr.udp.dst_port, hdr.udp.length ++ 16w0xffff ++ hdr.bth.opcode ++ hdr.bth.solicited ++ hdr.bth.migrated ++ hdr.bth.pad ++ hdr.bth.version ++ hdr.bth.partition, 8w0xff ++ hdr.bth.qpn ++ hdr.bth.ack_request ++ hdr.bth.reserved ++ hdr.bth.psn, hdr.lanes }, 64w0x100000000);
    }
    @brief("The worker at this port: addresses, QPN and first PSN of the connection to it.") action deliver(@format(IPV4_ADDRESS) ipv4_t src, @format(IPV4_ADDRESS) ipv4_t dst, bit<16> udp_src_port, qpn_t qpn, psn_t first_psn, bit<5> log2_slots) {
        bit<8> bth_copy = hdr.netfold.reserved;
        psn_t chunk = ((psn_t)hdr.netfold.tag[19:0] << log2_slots) + (psn_t)hdr.netfold.slot;
        hdr.bth = { bth_copy & BTH_OPCODE, bth_copy[5:5], 1, 0, 0, DEFAULT_PARTITION, 0, qpn, bth_copy[6:6], 0, first_psn + chunk };
        hdr.ipv4.src = src;
        hdr.ipv4.dst = dst;
        hdr.ipv4.dscp = 0;
        hdr.ipv4.ecn = (hdr.netfold.flags & FLAG_CONGESTION == 0 ? ECN_ECT0 : ECN_CE);
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = udp_src_port;
        hdr.udp.dst_port = ROCE_UDP_PORT;
        hdr.netfold.setInvalid();
        hdr.icrc.setValid();
    }
    @id(14) table roce_receivers {
        key = {
            standard.egress_port: exact @name("port");
            hdr.udp.dst_port    : exact @name("udp_port");
            hdr.netfold.tree    : exact @name("tree");
        }
        actions = {
            deliver;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }
    @hidden action swap_lane_bytes() {
        hdr.lanes.v00 = (lane_t)((bit<32>)hdr.lanes.v00 << 24 | ((bit<32>)hdr.lanes.v00 & 0xff00) << 8 | (bit<32>)hdr.lanes.v00 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v00 >> 24);
        hdr.lanes.v01 = (lane_t)((bit<32>)hdr.lanes.v01 << 24 | ((bit<32>)hdr.lanes.v01 & 0xff00) << 8 | (bit<32>)hdr.lanes.v01 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v01 >> 24);
        hdr.lanes.v02 = (lane_t)((bit<32>)hdr.lanes.v02 << 24 | ((bit<32>)hdr.lanes.v02 & 0xff00) << 8 | (bit<32>)hdr.lanes.v02 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v02 >> 24);
        hdr.lanes.v03 = (lane_t)((bit<32>)hdr.lanes.v03 << 24 | ((bit<32>)hdr.lanes.v03 & 0xff00) << 8 | (bit<32>)hdr.lanes.v03 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v03 >> 24);
        hdr.lanes.v04 = (lane_t)((bit<32>)hdr.lanes.v04 << 24 | ((bit<32>)hdr.lanes.v04 & 0xff00) << 8 | (bit<32>)hdr.lanes.v04 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v04 >> 24);
        hdr.lanes.v05 = (lane_t)((bit<32>)hdr.lanes.v05 << 24 | ((bit<32>)hdr.lanes.v05 & 0xff00) << 8 | (bit<32>)hdr.lanes.v05 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v05 >> 24);
        hdr.lanes.v06 = (lane_t)((bit<32>)hdr.lanes.v06 << 24 | ((bit<32>)hdr.lanes.v06 & 0xff00) << 8 | (bit<32>)hdr.lanes.v06 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v06 >> 24);
        hdr.lanes.v07 = (lane_t)((bit<32>)hdr.lanes.v07 << 24 | ((bit<32>)hdr.lanes.v07 & 0xff00) << 8 | (bit<32>)hdr.lanes.v07 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v07 >> 24);
        hdr.lanes.v08 = (lane_t)((bit<32>)hdr.lanes.v08 << 24 | ((bit<32>)hdr.lanes.v08 & 0xff00) << 8 | (bit<32>)hdr.lanes.v08 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v08 >> 24);
        hdr.lanes.v09 = (lane_t)((bit<32>)hdr.lanes.v09 << 24 | ((bit<32>)hdr.lanes.v09 & 0xff00) << 8 | (bit<32>)hdr.lanes.v09 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v09 >> 24);
        hdr.lanes.v0a = (lane_t)((bit<32>)hdr.lanes.v0a << 24 | ((bit<32>)hdr.lanes.v0a & 0xff00) << 8 | (bit<32>)hdr.lanes.v0a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0a >> 24);
        hdr.lanes.v0b = (lane_t)((bit<32>)hdr.lanes.v0b << 24 | ((bit<32>)hdr.lanes.v0b & 0xff00) << 8 | (bit<32>)hdr.lanes.v0b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0b >> 24);
        hdr.lanes.v0c = (lane_t)((bit<32>)hdr.lanes.v0c << 24 | ((bit<32>)hdr.lanes.v0c & 0xff00) << 8 | (bit<32>)hdr.lanes.v0c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0c >> 24);
        hdr.lanes.v0d = (lane_t)((bit<32>)hdr.lanes.v0d << 24 | ((bit<32>)hdr.lanes.v0d & 0xff00) << 8 | (bit<32>)hdr.lanes.v0d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0d >> 24);
        hdr.lanes.v0e = (lane_t)((bit<32>)hdr.lanes.v0e << 24 | ((bit<32>)hdr.lanes.v0e & 0xff00) << 8 | (bit<32>)hdr.lanes.v0e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0e >> 24);
        hdr.lanes.v0f = (lane_t)((bit<32>)hdr.lanes.v0f << 24 | ((bit<32>)hdr.lanes.v0f & 0xff00) << 8 | (bit<32>)hdr.lanes.v0f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v0f >> 24);
        hdr.lanes.v10 = (lane_t)((bit<32>)hdr.lanes.v10 << 24 | ((bit<32>)hdr.lanes.v10 & 0xff00) << 8 | (bit<32>)hdr.lanes.v10 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v10 >> 24);
        hdr.lanes.v11 = (lane_t)((bit<32>)hdr.lanes.v11 << 24 | ((bit<32>)hdr.lanes.v11 & 0xff00) << 8 | (bit<32>)hdr.lanes.v11 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v11 >> 24);
        hdr.lanes.v12 = (lane_t)((bit<32>)hdr.lanes.v12 << 24 | ((bit<32>)hdr.lanes.v12 & 0xff00) << 8 | (bit<32>)hdr.lanes.v12 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v12 >> 24);
        hdr.lanes.v13 = (lane_t)((bit<32>)hdr.lanes.v13 << 24 | ((bit<32>)hdr.lanes.v13 & 0xff00) << 8 | (bit<32>)hdr.lanes.v13 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v13 >> 24);
        hdr.lanes.v14 = (lane_t)((bit<32>)hdr.lanes.v14 << 24 | ((bit<32>)hdr.lanes.v14 & 0xff00) << 8 | (bit<32>)hdr.lanes.v14 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v14 >> 24);
        hdr.lanes.v15 = (lane_t)((bit<32>)hdr.lanes.v15 << 24 | ((bit<32>)hdr.lanes.v15 & 0xff00) << 8 | (bit<32>)hdr.lanes.v15 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v15 >> 24);
        hdr.lanes.v16 = (lane_t)((bit<32>)hdr.lanes.v16 << 24 | ((bit<32>)hdr.lanes.v16 & 0xff00) << 8 | (bit<32>)hdr.lanes.v16 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v16 >> 24);
        hdr.lanes.v17 = (lane_t)((bit<32>)hdr.lanes.v17 << 24 | ((bit<32>)hdr.lanes.v17 & 0xff00) << 8 | (bit<32>)hdr.lanes.v17 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v17 >> 24);
        hdr.lanes.v18 = (lane_t)((bit<32>)hdr.lanes.v18 << 24 | ((bit<32>)hdr.lanes.v18 & 0xff00) << 8 | (bit<32>)hdr.lanes.v18 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v18 >> 24);
        hdr.lanes.v19 = (lane_t)((bit<32>)hdr.lanes.v19 << 24 | ((bit<32>)hdr.lanes.v19 & 0xff00) << 8 | (bit<32>)hdr.lanes.v19 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v19 >> 24);
        hdr.lanes.v1a = (lane_t)((bit<32>)hdr.lanes.v1a << 24 | ((bit<32>)hdr.lanes.v1a & 0xff00) << 8 | (bit<32>)hdr.lanes.v1a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1a >> 24);
        hdr.lanes.v1b = (lane_t)((bit<32>)hdr.lanes.v1b << 24 | ((bit<32>)hdr.lanes.v1b & 0xff00) << 8 | (bit<32>)hdr.lanes.v1b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1b >> 24);
        hdr.lanes.v1c = (lane_t)((bit<32>)hdr.lanes.v1c << 24 | ((bit<32>)hdr.lanes.v1c & 0xff00) << 8 | (bit<32>)hdr.lanes.v1c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1c >> 24);
        hdr.lanes.v1d = (lane_t)((bit<32>)hdr.lanes.v1d << 24 | ((bit<32>)hdr.lanes.v1d & 0xff00) << 8 | (bit<32>)hdr.lanes.v1d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1d >> 24);
        hdr.lanes.v1e = (lane_t)((bit<32>)hdr.lanes.v1e << 24 | ((bit<32>)hdr.lanes.v1e & 0xff00) << 8 | (bit<32>)hdr.lanes.v1e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1e >> 24);
        hdr.lanes.v1f = (lane_t)((bit<32>)hdr.lanes.v1f << 24 | ((bit<32>)hdr.lanes.v1f & 0xff00) << 8 | (bit<32>)hdr.lanes.v1f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v1f >> 24);
        hdr.lanes.v20 = (lane_t)((bit<32>)hdr.lanes.v20 << 24 | ((bit<32>)hdr.lanes.v20 & 0xff00) << 8 | (bit<32>)hdr.lanes.v20 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v20 >> 24);
        hdr.lanes.v21 = (lane_t)((bit<32>)hdr.lanes.v21 << 24 | ((bit<32>)hdr.lanes.v21 & 0xff00) << 8 | (bit<32>)hdr.lanes.v21 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v21 >> 24);
        hdr.lanes.v22 = (lane_t)((bit<32>)hdr.lanes.v22 << 24 | ((bit<32>)hdr.lanes.v22 & 0xff00) << 8 | (bit<32>)hdr.lanes.v22 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v22 >> 24);
        hdr.lanes.v23 = (lane_t)((bit<32>)hdr.lanes.v23 << 24 | ((bit<32>)hdr.lanes.v23 & 0xff00) << 8 | (bit<32>)hdr.lanes.v23 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v23 >> 24);
        hdr.lanes.v24 = (lane_t)((bit<32>)hdr.lanes.v24 << 24 | ((bit<32>)hdr.lanes.v24 & 0xff00) << 8 | (bit<32>)hdr.lanes.v24 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v24 >> 24);
        hdr.lanes.v25 = (lane_t)((bit<32>)hdr.lanes.v25 << 24 | ((bit<32>)hdr.lanes.v25 & 0xff00) << 8 | (bit<32>)hdr.lanes.v25 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v25 >> 24);
        hdr.lanes.v26 = (lane_t)((bit<32>)hdr.lanes.v26 << 24 | ((bit<32>)hdr.lanes.v26 & 0xff00) << 8 | (bit<32>)hdr.lanes.v26 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v26 >> 24);
        hdr.lanes.v27 = (lane_t)((bit<32>)hdr.lanes.v27 << 24 | ((bit<32>)hdr.lanes.v27 & 0xff00) << 8 | (bit<32>)hdr.lanes.v27 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v27 >> 24);
        hdr.lanes.v28 = (lane_t)((bit<32>)hdr.lanes.v28 << 24 | ((bit<32>)hdr.lanes.v28 & 0xff00) << 8 | (bit<32>)hdr.lanes.v28 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v28 >> 24);
        hdr.lanes.v29 = (lane_t)((bit<32>)hdr.lanes.v29 << 24 | ((bit<32>)hdr.lanes.v29 & 0xff00) << 8 | (bit<32>)hdr.lanes.v29 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v29 >> 24);
        hdr.lanes.v2a = (lane_t)((bit<32>)hdr.lanes.v2a << 24 | ((bit<32>)hdr.lanes.v2a & 0xff00) << 8 | (bit<32>)hdr.lanes.v2a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2a >> 24);
        hdr.lanes.v2b = (lane_t)((bit<32>)hdr.lanes.v2b << 24 | ((bit<32>)hdr.lanes.v2b & 0xff00) << 8 | (bit<32>)hdr.lanes.v2b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2b >> 24);
        hdr.lanes.v2c = (lane_t)((bit<32>)hdr.lanes.v2c << 24 | ((bit<32>)hdr.lanes.v2c & 0xff00) << 8 | (bit<32>)hdr.lanes.v2c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2c >> 24);
        hdr.lanes.v2d = (lane_t)((bit<32>)hdr.lanes.v2d << 24 | ((bit<32>)hdr.lanes.v2d & 0xff00) << 8 | (bit<32>)hdr.lanes.v2d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2d >> 24);
        hdr.lanes.v2e = (lane_t)((bit<32>)hdr.lanes.v2e << 24 | ((bit<32>)hdr.lanes.v2e & 0xff00) << 8 | (bit<32>)hdr.lanes.v2e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2e >> 24);
        hdr.lanes.v2f = (lane_t)((bit<32>)hdr.lanes.v2f << 24 | ((bit<32>)hdr.lanes.v2f & 0xff00) << 8 | (bit<32>)hdr.lanes.v2f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v2f >> 24);
        hdr.lanes.v30 = (lane_t)((bit<32>)hdr.lanes.v30 << 24 | ((bit<32>)hdr.lanes.v30 & 0xff00) << 8 | (bit<32>)hdr.lanes.v30 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v30 >> 24);
        hdr.lanes.v31 = (lane_t)((bit<32>)hdr.lanes.v31 << 24 | ((bit<32>)hdr.lanes.v31 & 0xff00) << 8 | (bit<32>)hdr.lanes.v31 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v31 >> 24);
        hdr.lanes.v32 = (lane_t)((bit<32>)hdr.lanes.v32 << 24 | ((bit<32>)hdr.lanes.v32 & 0xff00) << 8 | (bit<32>)hdr.lanes.v32 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v32 >> 24);
        hdr.lanes.v33 = (lane_t)((bit<32>)hdr.lanes.v33 << 24 | ((bit<32>)hdr.lanes.v33 & 0xff00) << 8 | (bit<32>)hdr.lanes.v33 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v33 >> 24);
        hdr.lanes.v34 = (lane_t)((bit<32>)hdr.lanes.v34 << 24 | ((bit<32>)hdr.lanes.v34 & 0xff00) << 8 | (bit<32>)hdr.lanes.v34 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v34 >> 24);
        hdr.lanes.v35 = (lane_t)((bit<32>)hdr.lanes.v35 << 24 | ((bit<32>)hdr.lanes.v35 & 0xff00) << 8 | (bit<32>)hdr.lanes.v35 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v35 >> 24);
        hdr.lanes.v36 = (lane_t)((bit<32>)hdr.lanes.v36 << 24 | ((bit<32>)hdr.lanes.v36 & 0xff00) << 8 | (bit<32>)hdr.lanes.v36 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v36 >> 24);
        hdr.lanes.v37 = (lane_t)((bit<32>)hdr.lanes.v37 << 24 | ((bit<32>)hdr.lanes.v37 & 0xff00) << 8 | (bit<32>)hdr.lanes.v37 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v37 >> 24);
        hdr.lanes.v38 = (lane_t)((bit<32>)hdr.lanes.v38 << 24 | ((bit<32>)hdr.lanes.v38 & 0xff00) << 8 | (bit<32>)hdr.lanes.v38 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v38 >> 24);
        hdr.lanes.v39 = (lane_t)((bit<32>)hdr.lanes.v39 << 24 | ((bit<32>)hdr.lanes.v39 & 0xff00) << 8 | (bit<32>)hdr.lanes.v39 >> 8 & 0xff00 | (bit<32>)hdr.lanes.v39 >> 24);
        hdr.lanes.v3a = (lane_t)((bit<32>)hdr.lanes.v3a << 24 | ((bit<32>)hdr.lanes.v3a & 0xff00) << 8 | (bit<32>)hdr.lanes.v3a >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3a >> 24);
        hdr.lanes.v3b = (lane_t)((bit<32>)hdr.lanes.v3b << 24 | ((bit<32>)hdr.lanes.v3b & 0xff00) << 8 | (bit<32>)hdr.lanes.v3b >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3b >> 24);
        hdr.lanes.v3c = (lane_t)((bit<32>)hdr.lanes.v3c << 24 | ((bit<32>)hdr.lanes.v3c & 0xff00) << 8 | (bit<32>)hdr.lanes.v3c >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3c >> 24);
        hdr.lanes.v3d = (lane_t)((bit<32>)hdr.lanes.v3d << 24 | ((bit<32>)hdr.lanes.v3d & 0xff00) << 8 | (bit<32>)hdr.lanes.v3d >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3d >> 24);
        hdr.lanes.v3e = (lane_t)((bit<32>)hdr.lanes.v3e << 24 | ((bit<32>)hdr.lanes.v3e & 0xff00) << 8 | (bit<32>)hdr.lanes.v3e >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3e >> 24);
        hdr.lanes.v3f = (lane_t)((bit<32>)hdr.lanes.v3f << 24 | ((bit<32>)hdr.lanes.v3f & 0xff00) << 8 | (bit<32>)hdr.lanes.v3f >> 8 & 0xff00 | (bit<32>)hdr.lanes.v3f >> 24);
    }
    @hidden action saturate_lanes() {
    }
    apply {
        bit<8> opcode = hdr.netfold.reserved & (BTH_PRESENT | BTH_OPCODE);
        if (hdr.netfold.kind == kind_t.RESULT && (opcode == BTH_PRESENT | SEND_FIRST || opcode == BTH_PRESENT | SEND_MIDDLE || opcode == BTH_PRESENT | SEND_LAST || opcode == BTH_PRESENT | SEND_ONLY)) {
            flags_t flags = hdr.netfold.flags;
            if (roce_receivers.apply().hit) {
                if (ADDS_FLOATS && flags & FLAG_FLOATS != 0) {
                    swap_lane_bytes();
                } else if (SUMS_WRAP && flags & FLAG_OVERFLOW != 0) {
                    saturate_lanes();
                }
                compute_icrc();
                hdr.icrc.crc = crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24];
            }
        }
    }
}

control TransportIn(inout headers_t hdr, inout metadata_t meta) {
    RoceToGradient() roce_to_gradient;
    apply {
        if (hdr.udp.isValid() && hdr.udp.dst_port == ROCE_UDP_PORT || meta.quotes_roce == 1) {
            roce_to_gradient.apply(hdr, meta);
        }
        if (meta.wellformed == 1 && hdr.netfold.reserved & BTH_PRESENT != 0) {
            meta.annotation = hdr.netfold.reserved;
        }
    }
}

control TransportOut(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard) {
    ResultToRoce() result_to_roce;
    apply {
        if (meta.netfold == 1) {
            result_to_roce.apply(hdr, standard);
        }
    }
}

control Quorum(inout headers_t hdr, inout metadata_t meta) {
    register<bitmap_t>(4096) quorum_bitmap;
    register<bit<16>>(4096) quorum_state;
    bit<7> quorum;
    bit<7> count;
    bit<1> seal_requested;
    @brief("Contributions with which a sum of this tree may be sealed at its root; 0 at an inner node: any.") action set_quorum(bit<7> min_contributions) {
        quorum = min_contributions;
    }
    @id(4) table quorums {
        key = {
            meta.tree_index: exact @name("tree_index");
        }
        actions = {
            set_quorum;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }
    @hidden action update_quorum() {
        bitmap_t counted = 0;
        bit<16> state = 0;
        if (meta.slot.age == age_t.SAME) {
            quorum_bitmap.read(counted, meta.slot.index);
            quorum_state.read(state, meta.slot.index);
        }
        bitmap_t own_bit = counted & meta.child_mask;
        bit<1> was_sealed = state[14:14];
        seal_requested = state[15:15];
        count = state[6:0];
        if (was_sealed == 1 && own_bit == 0) {
            meta.slot.seal = seal_t.BYPASS;
            if (meta.role == role_t.ROOT) {
                meta.slot.seal = seal_t.LATE;
                meta.child_mask = counted;
                meta.full_mask = counted;
                hdr.netfold.exponent = 0;
                hdr.netfold.flags = hdr.netfold.flags & FLAG_CONGESTION;
            }
        } else {
            if (hdr.netfold.flags & FLAG_SEAL != 0) {
                seal_requested = 1;
            }
            if (own_bit == 0) {
                count = count + hdr.netfold.reserved[6:0];
            }
            counted = counted | meta.child_mask;
            bit<1> is_sealed = was_sealed;
            if (seal_requested == 1 && count >= quorum) {
                is_sealed = 1;
            }
            if (seal_requested == 0 && counted & meta.full_mask == meta.full_mask) {
                is_sealed = 1;
            }
            if (is_sealed == 1) {
                meta.slot.seal = (was_sealed == 1 ? seal_t.SEALED : seal_t.SEALING);
            }
            meta.full_mask = (is_sealed == 1 ? counted : 0);
            quorum_bitmap.write(meta.slot.index, counted);
            quorum_state.write(meta.slot.index, seal_requested ++ is_sealed ++ 7w0 ++ count);
        }
    }
    @hidden action write_quorum_fields() {
        meta.annotation = 1w0 ++ count;
        meta.quorum_flags = FLAG_QUORUM;
        if (meta.slot.seal == seal_t.LATE || meta.role == role_t.INNER && seal_requested == 1) {
            meta.quorum_flags = FLAG_QUORUM | FLAG_SEAL;
        }
    }
    apply {
        count = 0;
        seal_requested = 0;
        if (hdr.netfold.flags & FLAG_QUORUM != 0 && meta.role != role_t.MANAGEMENT) {
            if (quorums.apply().hit) {
                if (meta.slot.age != age_t.OLDER) {
                    update_quorum();
                } else if (meta.role == role_t.ROOT) {
                    meta.slot.seal = seal_t.SLOT_REUSED;
                } else {
                    meta.slot.seal = seal_t.BYPASS;
                }
                write_quorum_fields();
            }
        }
    }
}

parser PacketParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    TransportParser() transport_parser;
    state start {
        meta.ingress_port = standard.ingress_port;
        meta.reply_port = standard.ingress_port;
        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_ARP: parse_arp;
            default: accept;
        }
    }
    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.HeaderTooShort);
        transition select(hdr.ipv4.ihl) {
            5: parse_transport;
            default: parse_ipv4_options;
        }
    }
    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) * 32);
        transition parse_transport;
    }
    state parse_transport {
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (default, 0, PROTOCOL_UDP): parse_udp;
            (0, 0, PROTOCOL_TCP): parse_tcp_ports;
            (default, 0, PROTOCOL_ICMP): parse_icmp;
            default: accept;
        }
    }
    state parse_icmp {
        transition select(hdr.ipv4.more_fragments, packet.lookahead<bit<8>>()) {
            (0, 3): parse_quote;
            (0, 4 &&& 0xfe): parse_quote;
            (0, 11): parse_quote;
            (0, 12): parse_quote;
            (1, 3): quotes_netfold;
            (1, 4 &&& 0xfe): quotes_netfold;
            (1, 11): quotes_netfold;
            (1, 12): quotes_netfold;
            default: accept;
        }
    }
    state parse_quote {
        icmp_quote_t quote = packet.lookahead<icmp_quote_t>();
        transition select(quote.ihl, quote.protocol, quote.src_port, quote.dst_port) {
            (5, PROTOCOL_UDP, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): quotes_netfold;
            (5, PROTOCOL_UDP, ROCE_UDP_PORT, default): quotes_roce;
            (5, PROTOCOL_UDP, default, ROCE_UDP_PORT): quotes_roce;
            (5, default, default, default): accept;
            (default, PROTOCOL_UDP, default, default): quotes_netfold;
            default: accept;
        }
    }
    state quotes_netfold {
        meta.netfold = 1;
        transition accept;
    }
    state quotes_roce {
        meta.quotes_roce = 1;
        transition accept;
    }
    state parse_tcp_ports {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.l4_src_port = ports[31:16];
        meta.l4_dst_port = ports[15:0];
        transition accept;
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.ipv4.more_fragments, hdr.udp.src_port, hdr.udp.dst_port) {
            (1, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): first_fragment;
            (1, default, default): accept;
            (0, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK, NETFOLD_UDP_PORTS &&& NETFOLD_UDP_MASK): check_lengths;
            default: parse_other_udp;
        }
    }
    state parse_other_udp {
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transport_parser.apply(packet, hdr);
        transition accept;
    }
    state first_fragment {
        meta.netfold = 1;
        transition accept;
    }
    state check_lengths {
        meta.netfold = 1;
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transition select(hdr.ipv4.ihl, hdr.ipv4.total_length, hdr.udp.length) {
            (5, 28 + NETFOLD_BYTES, 8 + NETFOLD_BYTES): parse_netfold;
            (5, 28 + SHORT_BYTES, 8 + SHORT_BYTES): parse_short;
            default: accept;
        }
    }
    state parse_netfold {
        packet.extract(hdr.netfold);
        transition select(hdr.netfold.version, hdr.netfold.kind, hdr.netfold.lanes) {
            (NETFOLD_VERSION, kind_t.GRADIENT, 64): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESULT, 64): parse_lanes;
            (NETFOLD_VERSION, kind_t.READ, 64): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESET, 64): parse_lanes;
            default: check_target;
        }
    }
    state check_target {
        meta.is_targeted = 1;
        transition select(hdr.netfold.version, hdr.netfold.kind, hdr.netfold.flags, hdr.netfold.lanes) {
            (NETFOLD_VERSION, kind_t.GRADIENT, FLAG_DATA &&& FLAG_DATA | FLAG_QUORUM, TARGETED &&& TARGETED): parse_lanes;
            (NETFOLD_VERSION, kind_t.RESULT, FLAG_DATA &&& FLAG_DATA | FLAG_QUORUM, TARGETED &&& TARGETED): parse_lanes;
            default: accept;
        }
    }
    state parse_short {
        packet.extract(hdr.netfold);
        meta.is_targeted = 1;
        transition select(hdr.netfold.version, hdr.netfold.kind, hdr.netfold.flags, hdr.netfold.lanes) {
            (NETFOLD_VERSION, kind_t.GRADIENT, 0 &&& FLAG_DATA | FLAG_QUORUM, TARGETED &&& TARGETED): accept_short;
            (NETFOLD_VERSION, kind_t.RESULT, 0 &&& FLAG_QUORUM, TARGETED &&& TARGETED): accept_short;
            default: accept;
        }
    }
    state accept_short {
        meta.wellformed = 1;
        meta.is_short = 1;
        transition accept;
    }
    state parse_lanes {
        packet.extract(hdr.lanes);
        meta.wellformed = 1;
        transition accept;
    }
}

control VerifyIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4_options.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4_options.options }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control UpdateIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv4_options.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4_options.options }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Classify(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard) {
    @hidden action classify() {
        meta.ip_invalid = standard.checksum_error == 1 || standard.parser_error != error.NoError;
        meta.verdict = verdict_t.MALFORMED;
        if (hdr.udp.isValid() && hdr.udp.src_port != hdr.udp.dst_port) {
            meta.netfold = 0;
        }
    }
    apply {
        classify();
    }
}

control SlotTag(in headers_t hdr, inout metadata_t meta) {
    register<tag_t>(4096) tags;
    @hidden action access() {
        tags.read(meta.slot.tag, meta.slot.index);
        if (meta.role == role_t.MANAGEMENT) {
            if (hdr.netfold.kind == kind_t.RESET) {
                tags.write(meta.slot.index, 0);
            }
        } else if (hdr.netfold.tag == meta.slot.tag) {
            meta.slot.age = age_t.SAME;
        } else if (hdr.netfold.tag > meta.slot.tag) {
            meta.slot.age = age_t.NEWER;
            tags.write(meta.slot.index, hdr.netfold.tag);
        } else {
            meta.slot.age = age_t.OLDER;
        }
    }
    apply {
        access();
    }
}

control SlotBitmap(inout metadata_t meta) {
    register<bitmap_t>(4096) bitmaps;
    @hidden action access() {
        meta.slot.bitmap_before = 0;
        if (meta.role == role_t.MANAGEMENT || meta.slot.age == age_t.SAME) {
            bitmaps.read(meta.slot.bitmap_before, meta.slot.index);
        }
        bitmap_t bitmap = meta.slot.bitmap_before | meta.child_mask;
        if (bitmap == meta.full_mask) {
            meta.slot.is_complete = 1;
        }
        if (meta.slot.bitmap_before & meta.child_mask != 0) {
            meta.slot.own_bit_seen = 1;
            meta.slot.is_duplicate = 1;
        }
        if (meta.role != role_t.MANAGEMENT && meta.slot.age != age_t.OLDER) {
            bitmaps.write(meta.slot.index, bitmap);
            meta.is_only_added = ~(meta.slot.is_complete | meta.slot.is_duplicate);
        }
    }
    apply {
        access();
    }
}

control SlotAttributes(inout headers_t hdr, in metadata_t meta) {
    register<bit<16>>(4096) attributes;
    @hidden action access() {
        bit<16> held = 0;
        if (meta.role == role_t.MANAGEMENT || meta.slot.age == age_t.SAME) {
            attributes.read(held, meta.slot.index);
        }
        if (meta.role == role_t.MANAGEMENT) {
            hdr.netfold.flags = held[15:8];
            hdr.netfold.exponent = held[7:0];
        } else {
            hdr.netfold.flags = hdr.netfold.flags & SLOT_FLAGS | held[15:8];
            if (hdr.ipv4.ecn == ECN_CE) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_CONGESTION;
            }
            if (held[7:0] > hdr.netfold.exponent) {
                hdr.netfold.exponent = held[7:0];
            }
            if (meta.slot.age != age_t.OLDER) {
                attributes.write(meta.slot.index, hdr.netfold.flags ++ hdr.netfold.exponent);
            }
        }
    }
    apply {
        access();
    }
}

control Slot(inout headers_t hdr, inout metadata_t meta) {
    SlotTag() tag;
    Quorum() quorum;
    SlotBitmap() bitmap;
    SlotAttributes() attributes;
    Lanes() lanes;
    apply {
        if (meta.role == role_t.INNER || meta.role == role_t.ROOT || meta.role == role_t.MANAGEMENT) {
            tag.apply(hdr, meta);
            quorum.apply(hdr, meta);
            if (meta.slot.seal != seal_t.BYPASS) {
                bitmap.apply(meta);
                attributes.apply(hdr, meta);
                lanes.apply(hdr, meta);
            }
        }
    }
}

control Admission(in headers_t hdr, inout metadata_t meta) {
    @brief("Refuse the packet for the given reason, a verdict number of 16 or more.") action refuse(tree_index_t tree_index, verdict_t reason) {
        meta.role = role_t.NONE;
        meta.tree_index = tree_index;
        meta.verdict = reason;
    }
    @brief("This switch is an inner node of the tree: accumulate, send the partial sum up.") action add_at_inner(tree_index_t tree_index, bitmap_t child_mask, bitmap_t full_mask, slot_t base) {
        meta.role = role_t.INNER;
        meta.tree_index = tree_index;
        meta.child_mask = child_mask;
        meta.full_mask = full_mask;
        meta.slot.index = (slot_index_t)(base + hdr.netfold.slot);
    }
    @brief("This switch is the root of the tree: accumulate, send the result down.") action add_at_root(tree_index_t tree_index, bitmap_t child_mask, bitmap_t full_mask, slot_t base) {
        meta.role = role_t.ROOT;
        meta.tree_index = tree_index;
        meta.child_mask = child_mask;
        meta.full_mask = full_mask;
        meta.slot.index = (slot_index_t)(base + hdr.netfold.slot);
    }
    @brief("This switch is on the path of the child's edge.") action forward(tree_index_t tree_index, @refers_to(neighbors , port) port_t port) {
        meta.role = role_t.FORWARD;
        meta.tree_index = tree_index;
        meta.up_port = port;
    }
    @brief("A result from the root: replicate it to the result tree's ports.") action multicast(tree_index_t tree_index) {
        meta.role = role_t.MULTICAST;
        meta.tree_index = tree_index;
    }
    @brief("The controller reads or resets a slot.") action access_slot(tree_index_t tree_index, slot_t base) {
        meta.role = role_t.MANAGEMENT;
        meta.tree_index = tree_index;
        meta.slot.index = (slot_index_t)(base + hdr.netfold.slot);
    }
    @id(1) table admission {
        key = {
            meta.ingress_port     : exact @name("ingress_port");
            hdr.udp.dst_port      : exact @name("udp_port");
            hdr.netfold.kind      : exact @name("kind");
            hdr.netfold.tree      : exact @name("tree");
            hdr.netfold.child     : ternary @name("child");
            hdr.netfold.tag[31:20]: ternary @name("epoch");
            hdr.netfold.slot      : ternary @name("slot");
        }
        actions = {
            add_at_inner;
            add_at_root;
            forward;
            multicast;
            access_slot;
            refuse;
        }
        const default_action = refuse(0, verdict_t.UNADMITTED);
        size = 8192;
    }
    apply {
        admission.apply();
    }
}

control TreeRoutes(inout metadata_t meta) {
    action up(@refers_to(neighbors , port) port_t port, child_t child) {
        meta.up_port = port;
        meta.up_child = child;
    }
    @id(2) table uplink {
        key = {
            meta.tree_index: exact @name("tree_index");
        }
        actions = {
            up;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }
    action down(@refers_to(builtin : : multicast_group_table , multicast_group_id) group_t group) {
        meta.down_group = group;
    }
    @id(3) table downlink {
        key = {
            meta.tree_index: exact @name("tree_index");
        }
        actions = {
            down;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }
    apply {
        if (meta.role == role_t.INNER) {
            uplink.apply();
        } else if (meta.role == role_t.ROOT || meta.role == role_t.MULTICAST) {
            downlink.apply();
        }
    }
}

control Verdict(inout headers_t hdr, inout metadata_t meta) {
    action refuse() {
    }
    action drop(verdict_t reason) {
        meta.verdict = reason;
    }
    action accumulate() {
        meta.verdict = verdict_t.ACCUMULATED;
    }
    action make_result() {
        ipv4_t sender = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = sender;
        hdr.ipv4.ttl = 65;
        hdr.ipv4.ecn = ECN_ECT0;
        hdr.netfold.reserved = meta.annotation;
        hdr.netfold.flags = hdr.netfold.flags | meta.quorum_flags;
        hdr.netfold.kind = kind_t.RESULT;
    }
    action send_result() {
        meta.verdict = verdict_t.RESULT_SENT;
        make_result();
    }
    action resend_result() {
        meta.verdict = verdict_t.RESULT_RESENT;
        make_result();
    }
    action make_partial_sum() {
        hdr.ipv4.ttl = 65;
        hdr.ipv4.ecn = ECN_ECT0;
        hdr.netfold.reserved = meta.annotation;
        hdr.netfold.flags = hdr.netfold.flags | meta.quorum_flags;
        hdr.netfold.child = meta.up_child;
    }
    action send_sum() {
        meta.verdict = verdict_t.SUM_SENT;
        make_partial_sum();
    }
    action resend_sum() {
        meta.verdict = verdict_t.SUM_RESENT;
        make_partial_sum();
    }
    action forward() {
        meta.verdict = verdict_t.FORWARDED;
    }
    action multicast() {
        meta.verdict = verdict_t.MULTICAST;
    }
    action read_slot() {
        meta.verdict = verdict_t.SLOT_READ;
        hdr.netfold.tag = meta.slot.tag;
    }
    action reset_slot() {
        meta.verdict = verdict_t.SLOT_RESET;
        hdr.netfold.tag = meta.slot.tag;
    }
    action send_late() {
        meta.verdict = verdict_t.LATE;
        make_result();
    }
    action send_slot_reused() {
        meta.verdict = verdict_t.SLOT_REUSED;
        make_result();
        hdr.netfold.flags = FLAG_QUORUM | FLAG_SLOT_REUSED;
    }
    @id(5) table verdict {
        key = {
            meta.role             : exact @name("role");
            hdr.netfold.kind      : ternary @name("kind");
            meta.slot.age         : ternary @name("age");
            meta.slot.seal        : ternary @name("seal");
            meta.slot.is_duplicate: ternary @name("duplicate");
            meta.slot.is_complete : ternary @name("complete");
            hdr.ipv4.ttl          : ternary @name("ttl");
        }
        actions = {
            refuse;
            drop;
            accumulate;
            send_result;
            resend_result;
            send_sum;
            resend_sum;
            forward;
            multicast;
            read_slot;
            reset_slot;
            send_late;
            send_slot_reused;
        }
        const entries = {
                        (role_t.NONE, default, default, default, default, default, default) : refuse();
                        (role_t.MANAGEMENT, kind_t.READ, default, default, default, default, default) : read_slot();
                        (role_t.MANAGEMENT, kind_t.RESET, default, default, default, default, default) : reset_slot();
                        (role_t.FORWARD, default, default, default, default, default, 0 &&& 0xfe) : drop(verdict_t.EXPIRED);
                        (role_t.MULTICAST, default, default, default, default, default, 0 &&& 0xfe) : drop(verdict_t.EXPIRED);
                        (role_t.FORWARD, default, default, default, default, default, default) : forward();
                        (role_t.MULTICAST, default, default, default, default, default, default) : multicast();
                        (role_t.INNER, default, default, seal_t.SEALING, default, default, default) : send_sum();
                        (role_t.ROOT, default, default, seal_t.SEALING, default, default, default) : send_result();
                        (role_t.INNER, default, default, seal_t.SEALED, default, default, default) : resend_sum();
                        (role_t.ROOT, default, default, seal_t.SEALED, default, default, default) : resend_result();
                        (role_t.ROOT, default, default, seal_t.LATE, default, default, default) : send_late();
                        (role_t.ROOT, default, default, seal_t.SLOT_REUSED, default, default, default) : send_slot_reused();
                        (role_t.INNER, default, default, seal_t.BYPASS, default, default, 0 &&& 0xfe) : drop(verdict_t.EXPIRED);
                        (role_t.INNER, default, default, seal_t.BYPASS, default, default, default) : forward();
                        (role_t.INNER, default, age_t.OLDER, default, default, default, default) : drop(verdict_t.STALE_CHUNK);
                        (role_t.ROOT, default, age_t.OLDER, default, default, default, default) : drop(verdict_t.STALE_CHUNK);
                        (role_t.INNER, default, default, default, 0, 1, default) : send_sum();
                        (role_t.ROOT, default, default, default, 0, 1, default) : send_result();
                        (role_t.INNER, default, default, default, 1, 1, default) : resend_sum();
                        (role_t.ROOT, default, default, default, 1, 1, default) : resend_result();
                        (role_t.INNER, default, default, default, 0, 0, default) : accumulate();
                        (role_t.ROOT, default, default, default, 0, 0, default) : accumulate();
                        (role_t.INNER, default, default, default, 1, 0, default) : drop(verdict_t.DUPLICATE);
                        (role_t.ROOT, default, default, default, 1, 0, default) : drop(verdict_t.DUPLICATE);
        }
        const default_action = drop(verdict_t.MALFORMED);
        size = 32;
    }
    apply {
        verdict.apply();
    }
}

control EgressSelect(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @hidden action drop() {
        mark_to_drop(standard);
    }
    @hidden action to_workers() {
        standard.mcast_grp = meta.down_group;
        meta.routed = 1;
    }
    @hidden action to_parent() {
        standard.egress_spec = meta.up_port;
        meta.routed = 1;
    }
    @hidden action to_sender() {
        standard.egress_spec = meta.reply_port;
        meta.routed = 1;
    }
    @hidden action to_controller() {
        standard.egress_spec = CPU_PORT;
    }
    @hidden action unrouted() {
        meta.verdict = verdict_t.UNROUTED;
        mark_to_drop(standard);
    }
    @hidden table egress_actions {
        key = {
            meta.verdict   : exact;
            meta.up_port   : ternary;
            meta.down_group: ternary;
        }
        actions = {
            drop;
            to_workers;
            to_parent;
            to_sender;
            to_controller;
            unrouted;
        }
        const entries = {
                        (verdict_t.RESULT_SENT, default, 0) : unrouted();
                        (verdict_t.MULTICAST, default, 0) : unrouted();
                        (verdict_t.RESULT_SENT, default, default) : to_workers();
                        (verdict_t.MULTICAST, default, default) : to_workers();
                        (verdict_t.SUM_SENT, 0, default) : unrouted();
                        (verdict_t.SUM_RESENT, 0, default) : unrouted();
                        (verdict_t.FORWARDED, 0, default) : unrouted();
                        (verdict_t.SUM_SENT, default, default) : to_parent();
                        (verdict_t.SUM_RESENT, default, default) : to_parent();
                        (verdict_t.FORWARDED, default, default) : to_parent();
                        (verdict_t.RESULT_RESENT, default, default) : to_sender();
                        (verdict_t.LATE, default, default) : to_sender();
                        (verdict_t.SLOT_REUSED, default, default) : to_sender();
                        (verdict_t.SLOT_READ, default, default) : to_controller();
                        (verdict_t.SLOT_RESET, default, default) : to_controller();
        }
        const default_action = drop();
    }
    apply {
        egress_actions.apply();
    }
}

enum bit<2> cut_t {
    NONE = 0,
    ALL_BUT_ONE = 1,
    ONE = 2
}

control SumForm(inout headers_t hdr, inout metadata_t meta) {
    @brief("The port of the result tree that leads to the owner of a target. alone: it leads to no other worker.") action lead(@refers_to(neighbors , port) port_t via, bit<1> alone) {
        meta.owner_port = via;
        if (hdr.netfold.lanes[14:14] == 0) {
            meta.cut = cut_t.ALL_BUT_ONE;
        } else if (alone == 1) {
            meta.cut = cut_t.ONE;
        }
    }
    action lead_away() {
        if (hdr.netfold.lanes[14:14] == 0) {
            meta.cut = cut_t.ALL_BUT_ONE;
        }
    }
    @id(6) table owners {
        key = {
            meta.tree_index        : exact @name("tree_index");
            hdr.netfold.lanes[13:0]: exact @name("owner");
        }
        actions = {
            lead;
            @defaultonly lead_away;
        }
        const default_action = lead_away();
        size = 8192;
    }
    @hidden action make_whole() {
        hdr.ipv4.total_length = 28 + NETFOLD_BYTES;
        hdr.udp.length = 8 + NETFOLD_BYTES;
    }
    @hidden action make_short() {
        hdr.lanes.setInvalid();
        hdr.ipv4.total_length = 28 + SHORT_BYTES;
        hdr.udp.length = 8 + SHORT_BYTES;
    }
    apply {
        if (meta.is_targeted == 1) {
            if (meta.role == role_t.INNER || meta.role == role_t.ROOT) {
                if (hdr.netfold.flags & FLAG_DATA != 0) {
                    make_whole();
                } else {
                    make_short();
                }
            }
            if (hdr.lanes.isValid() && (meta.verdict == verdict_t.RESULT_SENT || meta.verdict == verdict_t.MULTICAST)) {
                owners.apply();
            }
        }
    }
}

control ResultCut(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard) {
    @id(4) @brief("Targeted packets sent, by port * 2 + 1 if whole; each copy of a multicast.") counter(512 * 2, CounterType.packets) targeted_tx;
    @hidden action cut() {
        if (meta.cut == cut_t.ALL_BUT_ONE && standard.egress_port != meta.owner_port || meta.cut == cut_t.ONE && standard.egress_port == meta.owner_port) {
            hdr.lanes.setInvalid();
            hdr.ipv4.total_length = 28 + SHORT_BYTES;
            hdr.udp.length = 8 + SHORT_BYTES;
        }
        truncate(14 + (bit<32>)hdr.ipv4.total_length);
        targeted_tx.count((bit<32>)(standard.egress_port ++ (hdr.lanes.isValid() ? 1w1 : 1w0)));
    }
    apply {
        cut();
    }
}

control HashSeed(in headers_t hdr, inout metadata_t meta) {
    @hidden action digest_flow() {
        hash(meta.flow_1, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.l4_src_port, meta.l4_dst_port }, 64w0x100000000);
    }
    @hidden action digest_flow_again() {
        hash(meta.flow_2, HashAlgorithm.crc32, 32w0, { meta.l4_src_port, meta.l4_dst_port, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }, 64w0x100000000);
    }
    @brief("This switch's summand of the hashes of flows.") action set_hash_seed(bit<32> seed) {
        meta.flow_1 = meta.flow_1 + seed;
        meta.flow_2 = meta.flow_2 + seed;
    }
    @id(7) table hash_seeds {
        key = {
            hdr.ipv4.version: exact @name("version");
        }
        actions = {
            set_hash_seed;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            digest_flow();
            digest_flow_again();
            hash_seeds.apply();
        }
    }
}

control Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action nexthop(@refers_to(neighbors , port) port_t port) {
        standard.egress_spec = port;
        meta.routed = 1;
    }
    @id(1) action_selector(HashAlgorithm.crc32, 512, 14) nexthops;
    @id(8) table ipv4_routes {
        key = {
            hdr.ipv4.dst: lpm @name("destination") @format(IPV4_ADDRESS);
            meta.flow_1 : selector;
            meta.flow_2 : selector;
        }
        actions = {
            nexthop;
        }
        implementation = nexthops;
        size = 2048;
    }
    action reply(@format(MAC_ADDRESS) mac_t mac) {
        ipv4_t target = hdr.arp.target_ip;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = target;
        standard.egress_spec = meta.ingress_port;
    }
    @id(9) table arp_responder {
        key = {
            hdr.arp.target_ip: lpm @name("target") @format(IPV4_ADDRESS);
        }
        actions = {
            reply;
            @defaultonly drop;
        }
        const default_action = drop();
        size = 2048;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            if (meta.ip_invalid || hdr.ipv4.ttl == 0 || hdr.ipv4.ttl == 1) {
                drop();
            } else if (ipv4_routes.apply().miss) {
                drop();
            }
        } else if (hdr.arp.isValid() && hdr.arp.operation == ARP_REQUEST) {
            arp_responder.apply();
        } else {
            drop();
        }
    }
}

control Delivery(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard) {
    ipv4_t host_address;
    bit<32> threshold;
    bit<32> depth;
    bit<32> ecn_margin;
    action to_switch(@format(MAC_ADDRESS) mac_t src, @format(MAC_ADDRESS) mac_t dst) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
    }
    action to_host(@format(MAC_ADDRESS) mac_t src, @format(MAC_ADDRESS) mac_t dst, @format(IPV4_ADDRESS) ipv4_t address) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        host_address = address;
    }
    @id(10) table neighbors {
        key = {
            standard.egress_port: exact @name("port");
        }
        actions = {
            to_switch;
            to_host;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }
    action set_ecn_threshold(bit<19> depth) {
        threshold = (bit<32>)depth;
    }
    @brief("The queue depth from which ECN-capable packets are marked; no entry, no marking.") @id(11) table ecn_thresholds {
        key = {
            standard.egress_port: exact @name("port");
        }
        actions = {
            set_ecn_threshold;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }
    @hidden action compute_ecn_margin() {
        ecn_margin = threshold |-| depth;
    }
    @hidden table queue {
        actions = {
            compute_ecn_margin;
        }
        const default_action = compute_ecn_margin();
    }
    apply {
        depth = (bit<32>)standard.enq_qdepth;
        threshold = 0x7ffff;
        ecn_thresholds.apply();
        queue.apply();
        switch (neighbors.apply().action_run) {
            to_host: {
                if (meta.netfold == 1) {
                    hdr.ipv4.dst = host_address;
                }
            }
        }
        if (ecn_margin == 0 && hdr.ipv4.ecn != 0) {
            hdr.ipv4.ecn = ECN_CE;
            if (meta.netfold == 1) {
                hdr.netfold.flags = hdr.netfold.flags | FLAG_CONGESTION;
            }
        }
        if (meta.netfold == 1) {
            hdr.udp.checksum = 0;
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Classify() classify;
    TransportIn() transport_in;
    Admission() admission;
    Slot() slot;
    TreeRoutes() tree_routes;
    Verdict() verdict;
    SumForm() sum_form;
    EgressSelect() egress_select;
    HashSeed() hash_seed;
    Forwarding() forwarding;
    @id(1) @brief("Packets by tree_index * 32 + verdict; each netfold packet counts exactly once (I8).") counter(1024 * 32, CounterType.packets_and_bytes) verdicts;
    @id(2) @brief("Packets received, by port * 2 + 1 if of a job: admitted, or refused for its slot or epoch alone.") counter(512 * 2, CounterType.packets_and_bytes) port_rx;
    bool sent_by_controller;
    @hidden action count() {
        if (meta.is_only_added == 1) {
            meta.verdict = verdict_t.ACCUMULATED;
            mark_to_drop(standard);
        }
        bit<1> is_job_traffic = meta.netfold;
        if (meta.verdict == verdict_t.UNADMITTED || meta.verdict == verdict_t.MALFORMED) {
            is_job_traffic = 0;
        }
        port_rx.count((bit<32>)(standard.ingress_port ++ is_job_traffic));
        if (meta.netfold == 1 && !sent_by_controller) {
            verdicts.count((bit<32>)(meta.tree_index ++ (bit<5>)meta.verdict));
        }
        hdr.packet_out.setInvalid();
    }
    apply {
        classify.apply(hdr, meta, standard);
        transport_in.apply(hdr, meta);
        sent_by_controller = hdr.packet_out.isValid() && hdr.packet_out.egress_port != 0;
        if (sent_by_controller) {
            standard.egress_spec = hdr.packet_out.egress_port;
        } else if (meta.netfold == 1) {
            if (meta.wellformed == 1 && !meta.ip_invalid) {
                admission.apply(hdr, meta);
                slot.apply(hdr, meta);
                if (meta.is_only_added == 0) {
                    tree_routes.apply(meta);
                    verdict.apply(hdr, meta);
                    sum_form.apply(hdr, meta);
                }
            }
            if (meta.is_only_added == 0) {
                egress_select.apply(hdr, meta, standard);
            }
        } else {
            hash_seed.apply(hdr, meta);
            forwarding.apply(hdr, meta, standard);
        }
        count();
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Delivery() delivery;
    ResultCut() result_cut;
    TransportOut() transport_out;
    @id(3) @brief("Packets sent, by port * 2 + 1 if of a job; each copy of a multicast. targeted_tx counts targeted ones.") counter(512 * 2, CounterType.packets_and_bytes) port_tx;
    @hidden action count() {
        standard.enq_qdepth = (bit<19>)(standard.deq_timedelta < MAX_QUEUE_US ? standard.deq_timedelta : MAX_QUEUE_US);
        if (meta.routed & meta.netfold & meta.is_targeted == 0) {
            port_tx.count((bit<32>)(standard.egress_port ++ meta.netfold));
        }
    }
    apply {
        count();
        if (standard.egress_port == CPU_PORT) {
            hdr.packet_in = { meta.reply_port, 0, meta.slot.bitmap_before };
        } else if (meta.routed == 1) {
            delivery.apply(hdr, meta, standard);
            if (meta.netfold == 1 && meta.is_targeted == 1) {
                result_cut.apply(hdr, meta, standard);
            } else {
                transport_out.apply(hdr, meta, standard);
            }
        }
    }
}

control PacketDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

@pkginfo(name="netfold", version="1") V1Switch(PacketParser(), VerifyIpv4Checksum(), SwitchIngress(), SwitchEgress(), UpdateIpv4Checksum(), PacketDeparser()) main;
