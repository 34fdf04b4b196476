// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// Lanes are int32 alone: FLAG_FLOATS is dropped. What lanes_float.p4 defines, empty.

#ifndef NETFOLD_LANES_INTEGER
#define NETFOLD_LANES_INTEGER

const bool    ADDS_FLOATS = false;
const flags_t SLOT_FLAGS  = FLAG_OVERFLOW | FLAG_CONGESTION | FLAG_DATA;

#define FLOAT_LANES
#define ADD_FLOAT_LANES
#define SWAP_ALL_LANE_BYTES

#include "lanes.p4"

#endif
