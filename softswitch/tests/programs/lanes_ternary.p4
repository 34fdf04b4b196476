// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// lanes.p4 with conditional expressions instead of if/else.

#define TERNARY
#include "lanes.p4"
