// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// 512 lanes: integers and quorums, for links with an MTU of at least 2,092. RoCE's path MTU would be 2,048.

#define LANES 512

#include "../v1model/arch.p4"
#include "../transport/none/headers.p4"
#include "../v1model/headers.p4"
#include "../v1model/lanes_integer.p4"
#include "../transport/none/transport.p4"
#include "../quorum/on.p4"
#include "../v1model/netfold.p4"
