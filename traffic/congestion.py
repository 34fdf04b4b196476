# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks of a tree a worker keeps under way: the controls of the engine (control.c), by name."""

from __future__ import annotations

from enum import StrEnum


class Congestion(StrEnum):
    """In the order of the engine's `enum nf_congestion`."""

    FIXED = "fixed"
    ATP = "atp"
    PANAMA = "panama"
