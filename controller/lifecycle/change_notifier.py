# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Wakes tasks that wait for changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


class ChangeNotifier:
    """Lets tasks `wait` for any change, or for a change of one job. A thousand members wait for their own job only."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._job_events: dict[str, asyncio.Event] = {}

    def notify(self, *jobs: str) -> None:
        """Announce a change; it wakes waiters for any change and those for one of `jobs`."""
        self._event.set()
        self._event = asyncio.Event()
        for job in jobs:
            if job in self._job_events:
                self._job_events.pop(job).set()

    def wait(self, job: str | None = None) -> Awaitable[object]:
        """An awaitable that completes at the next notification after this call (for the job), whenever it is
        awaited."""
        if job is None:
            return self._event.wait()
        return self._job_events.setdefault(job, asyncio.Event()).wait()
