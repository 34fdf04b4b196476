// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// As v1model_32.p4, in the form for BMv2: the lanes are one word.

#define LANES 32
#define WIDE_LANES

#include "../v1model/arch.p4"
#include "../transport/none/headers.p4"
#include "../v1model/headers.p4"
#include "../v1model/lanes_wide.p4"
#include "../transport/none/transport.p4"
#include "../quorum/on.p4"
#include "../v1model/netfold.p4"
