// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// 64 lanes: integers and floats, RoCE at the leaves, quorums.

#define LANES 64

#include "../v1model/arch.p4"
#include "../transport/roce/headers.p4"
#include "../v1model/headers.p4"
#include "../v1model/lanes_float.p4"
#include "../transport/roce/transport.p4"
#include "../quorum/on.p4"
#include "../v1model/netfold.p4"
