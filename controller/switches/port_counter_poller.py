# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the port counters of a switch periodically, twice as often while the load of its ports changes. Each reading is
also the keepalive of the connection: a switch that hangs closes no connection, but it answers no read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

FAST_POLL_FACTOR = 0.5
"""Fraction of the period after which a changed load is read again."""


class PortCounterPoller:
    """Polls by `poll()`, which reads, and returns True while the load changes; `now`: the clock of the event loop."""

    def __init__(
        self, poll: Callable[[], Awaitable[bool]], period_s: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._poll = poll
        self._period_s = period_s
        self._now = now

    async def run(self) -> NoReturn:
        """Poll until canceled, or until a reading fails: raises SwitchUnreachableError, AnswerError."""
        while True:
            began = self._now()
            period_s = self._period_s * (FAST_POLL_FACTOR if await self._poll() else 1.0)
            # counters have no event
            await asyncio.sleep(max(0.0, began + period_s - self._now()))
