# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The counter `verdicts`: every netfold packet counts once, at tree_index * 32 + verdict
(docs/protocol.md, section 4)."""

from __future__ import annotations

from enum import IntEnum


class Verdict(IntEnum):
    """As in p4src/common/types.p4."""

    ABSORBED = 1
    RESULT_SENT = 2
    RESULT_REPEATED = 3
    SUM_SENT = 4
    SUM_REPEATED = 5
    PASSED = 6
    RELAYED = 7
    SLOT_READ = 8
    SLOT_RESET = 9
    UNADMITTED = 16
    STALE_EPOCH = 17
    BAD_SLOT = 18
    STALE_CHUNK = 19
    DUPLICATE = 20
    MALFORMED = 21
    UNROUTED = 22

    @property
    def label(self) -> str:
        return self.name.lower()


NO_TREE = 0
"""The tree_index of packets that belong to no tree."""

_VERDICTS = 32


def cell(tree: int, verdict: Verdict) -> int:
    return tree * _VERDICTS + verdict
