# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The algorithms of engine/congestion by name: they choose how many chunks of a tree a worker keeps in flight."""

from __future__ import annotations

from enum import StrEnum

MARK_FRACTION = 11 / 64
"""The default marking threshold is this fraction of the queue: 11 of 64, where a job alone still fills its link.
With a larger one short flows that share links with a job wait longer (docs/decisions/0024)."""


class Congestion(StrEnum):
    """The members are in the order of the engine's `enum nf_congestion`."""

    FIXED = "fixed"
    ATP = "atp"
    PANAMA = "panama"
