// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0
// generated from protocol/wire.yaml by `make wire`

#ifndef NETFOLD_TARGET_WIRE
#define NETFOLD_TARGET_WIRE

const flags_t FLAG_DATA        = 0x02;  // a contribution has lanes

const bit<16> TARGETED = 0x8000;  // in netfold.lanes
#define TARGET_ALL_BUT 14:14
#define TARGET_OWNER 13:0

#endif
