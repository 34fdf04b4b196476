# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Names the cells of the counter `verdicts`: one count per netfold packet, at tree_index * 32 + verdict
(docs/reference/protocol.md, section 4)."""

from __future__ import annotations

from netfold.protocol.wire import Verdict

NO_TREE = 0
"""The tree_index of packets that belong to no tree."""

_VERDICTS = 32


def cell(tree: int, verdict: Verdict) -> int:
    return tree * _VERDICTS + verdict
