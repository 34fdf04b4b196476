// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// arith.p4 for operands of 520 bits.

#define WIDE
#include "arith.p4"
