# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Names in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NAMES = 8


def listing(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """ "a, b, c"; of more than `most` names the first ones, and how many there are beside them."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
