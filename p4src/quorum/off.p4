// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// No quorums: every sum waits for all children. common/verdict.p4 has no row for them.

#ifndef NETFOLD_QUORUM
#define NETFOLD_QUORUM

control Quorum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

#endif
