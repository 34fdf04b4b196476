// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// As v1model_64.p4, with nodes of up to 64 children.

#define CHILDREN 64

#include "v1model_64.p4"
