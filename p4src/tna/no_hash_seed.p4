// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// With a seed, Tofino 2's lanes begin a stage too late: docs/decisions/0057-a-switch-s-hash-has-a-seed.md. Each second tier of
// switches has a program with another FLOW_HASH instead.

control HashSeed(in headers_t hdr, inout metadata_t meta) {
    apply {
    }
}
