# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An event that happens again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


class Pulse:
    """Wakes whoever waits: for anything, or for news of one job. A thousand members wait for news of their job, and
    need not hear of each other's joining."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._news: dict[str, asyncio.Event] = {}

    def beat(self, *jobs: str) -> None:
        """Something changed; of `jobs` what their members have to know."""
        self._event.set()
        self._event = asyncio.Event()
        for job in jobs:
            if job in self._news:
                self._news.pop(job).set()

    def wait(self, job: str | None = None) -> Awaitable[object]:
        """Of the next beat after this call (that has news of the job), whenever it is awaited."""
        if job is None:
            return self._event.wait()
        return self._news.setdefault(job, asyncio.Event()).wait()
