// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// 256 lanes: integers, RoCE at the leaves, quorums. Floats would take 40 KB of the program for each lane.

#define LANES 256

#include "../v1model/arch.p4"
#include "../transport/roce/headers.p4"
#include "../v1model/headers.p4"
#include "../v1model/lanes_integer.p4"
#include "../transport/roce/transport.p4"
#include "../quorum/on.p4"
#include "../v1model/netfold.p4"
