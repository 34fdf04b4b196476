# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Names the algorithms of engine/congestion, which limit the chunks of a tree in flight."""

from __future__ import annotations

from enum import StrEnum


class Congestion(StrEnum):
    """In the order of the engine's `enum nf_congestion`."""

    FIXED = "fixed"
    ATP = "atp"
    PANAMA = "panama"
