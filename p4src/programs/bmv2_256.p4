// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// As v1model_256.p4, in the form for BMv2: 64 lanes are one word.

#define LANES 256
#define WIDE_LANES

#include "../v1model/arch.p4"
#include "../transport/roce/headers.p4"
#include "../v1model/headers.p4"
#include "../v1model/lanes_wide.p4"
#include "../transport/roce/transport.p4"
#include "../quorum/on.p4"
#include "../v1model/netfold.p4"
