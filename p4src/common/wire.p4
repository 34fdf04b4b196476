// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0
// generated from protocol/wire.yaml by `make wire`

#ifndef NETFOLD_WIRE
#define NETFOLD_WIRE

const bit<4>  NETFOLD_VERSION      = 1;
const bit<16> NETFOLD_UDP_PORTS    = 0xF000;  // 61440 ... 61695
const bit<16> NETFOLD_UDP_MASK     = 0xFF00;
const bit<16> NETFOLD_HEADER_BYTES = 16;

const flags_t FLAG_OVERFLOW    = 0x80;  // lanes may be saturated
const flags_t FLAG_CONGESTION  = 0x40;  // ECN mark on the path
const flags_t FLAG_QUORUM      = 0x20;  // tree with a quorum
const flags_t FLAG_SEAL        = 0x10;  // seal requested (up), contribution late (down)
const flags_t FLAG_SLOT_REUSED = 0x08;  // sum no longer available
const flags_t FLAG_FLOATS      = 0x04;  // lanes are float32

const lane_t LANE_MAX = 0x7FFFFFFF;
const lane_t LANE_MIN = -0x80000000;

enum bit<4> kind_t {
    GRADIENT = 0,
    RESULT   = 1,
    READ     = 2,
    RESET    = 3
}

enum bit<5> verdict_t {
    NONE          = 0,
    ACCUMULATED   = 1,
    RESULT_SENT   = 2,
    RESULT_RESENT = 3,
    SUM_SENT      = 4,
    SUM_RESENT    = 5,
    FORWARDED     = 6,
    MULTICAST     = 7,
    SLOT_READ     = 8,
    SLOT_RESET    = 9,
    UNADMITTED    = 16,
    STALE_EPOCH   = 17,
    BAD_SLOT      = 18,
    STALE_CHUNK   = 19,
    DUPLICATE     = 20,
    MALFORMED     = 21,
    UNROUTED      = 22,
    EXPIRED       = 23,
    LATE          = 24,
    SLOT_REUSED   = 25
}

#endif
