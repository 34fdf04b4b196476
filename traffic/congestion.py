# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks of a tree a worker keeps under way: the algorithms of engine/congestion, by name."""

from __future__ import annotations

from enum import StrEnum

MARK_FRACTION = 11 / 64
"""Default marking threshold, as a fraction of the queue: 11 of 64, where a job alone still fills its
link. More, and short flows wait longer beside a job (docs/decisions/0024)."""


class Congestion(StrEnum):
    """In the order of the engine's `enum nf_congestion`."""

    FIXED = "fixed"
    ATP = "atp"
    PANAMA = "panama"
