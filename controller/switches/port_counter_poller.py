# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the port counters of a switch periodically, twice as often while the load of its ports changes. Each reading is
also the keepalive of the connection: a switch that hangs closes no connection, but it answers no read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

from finsy.proto import p4r

from netfold.controller.switches.port_counters import PortCounts, PortReader

FAST_POLL_FACTOR = 0.5
"""Part of the period after which a changed load is read again."""

Read = Callable[[p4r.ReadRequest], Awaitable[tuple[Sequence[p4r.ReadResponse], float]]]
"""Returns the responses, and when the request was sent (monotonic clock)."""


class PortCounterPoller:
    """`on_counts(counts, sent_at)` returns True while the load changes. `keepalive` replaces the reading where the
    switch's program has no port counters."""

    def __init__(
        self,
        reader: PortReader,
        read: Read,
        keepalive: Callable[[], Awaitable[object]],
        on_counts: Callable[[PortCounts, float], bool],
        period_s: float,
    ) -> None:
        self._reader = reader
        self._read = read
        self._keepalive = keepalive
        self._on_counts = on_counts
        self._period_s = period_s

    async def run(self) -> NoReturn:
        """Until canceled, or until a reading fails: raises SwitchUnreachableError, AnswerError."""
        while True:
            began = time.monotonic()
            is_changing = await self._poll()
            period_s = self._period_s * (FAST_POLL_FACTOR if is_changing else 1.0)
            await asyncio.sleep(max(0.0, began + period_s - time.monotonic()))

    async def _poll(self) -> bool:
        if not self._reader:
            await self._keepalive()
            return False
        responses, sent_at = await self._read(self._reader.request)
        return self._on_counts(self._reader.counts(responses), sent_at)
