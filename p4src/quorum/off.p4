// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

// No quorums: every sum waits for all children. What quorum/on.p4 defines, empty.

#ifndef NETFOLD_QUORUM
#define NETFOLD_QUORUM

#define SEAL_KEY
#define ROW(role, kind, age, seal, duplicate, complete, ttl) (role, kind, age, duplicate, complete, ttl)
#define QUORUM_ROWS(...)
#define QUORUM_VERDICTS
#define QUORUM_VERDICT_ACTIONS

control Quorum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

#endif
