// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// 32 lanes: integers and quorums. A packet of 32 lanes is no path MTU of RoCE.

#define LANES 32

#include "../v1model/arch.p4"
#include "../transport/none/headers.p4"
#include "../v1model/headers.p4"
#include "../v1model/lanes_integer.p4"
#include "../transport/none/transport.p4"
#include "../quorum/on.p4"
#include "../v1model/netfold.p4"
