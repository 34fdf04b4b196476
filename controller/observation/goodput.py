# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Goodput of members now, from the chunks that they report. What members report themselves is of all their calls."""

from __future__ import annotations

from collections import deque

from netfold.controller.lifecycle.member_status import Holder

WINDOW_S = 3.0
"""Rates are over the reports of so long."""

SILENT_S = 2.0
"""Without new chunks for so long, the time since the last ones counts."""


class RecentGoodput:
    """`lanes`: of a chunk; each carries 4 bytes of payload."""

    def __init__(self, lanes: int) -> None:
        self._bits_of_chunk = 32 * lanes
        self._reports: dict[Holder, deque[tuple[float, int]]] = {}

    def mbps(self, holder: Holder, chunks: int, now: float) -> float:
        """`chunks`: reported until `now` (seconds of a monotonic clock)."""
        reports = self._reports.setdefault(holder, deque())
        if not reports or chunks < reports[-1][1]:  # a restarted member counts from 0
            reports.clear()
            reports.append((now, chunks))
        elif chunks > reports[-1][1]:
            reports.append((now, chunks))
        while len(reports) > 1 and now - reports[1][0] >= WINDOW_S:
            reports.popleft()
        (began, first), (ended, last) = reports[0], reports[-1]
        if now - ended > SILENT_S:
            ended = now
        return (last - first) * self._bits_of_chunk / (ended - began) / 1e6 if ended > began else 0.0

    def forget(self, holder: Holder) -> None:
        self._reports.pop(holder, None)
