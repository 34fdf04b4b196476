# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members as they are now: who has a stream open, and what each reported last. Nothing of it outlives the
controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Holder = tuple[str, str]
"""Job and host."""


@dataclass(frozen=True)
class Progress:
    """What a member has reported, since it joined."""

    chunks: int = 0
    retransmits: int = 0
    overflows: int = 0
    goodput_mbps: float = 0.0


class Presence:
    def __init__(self) -> None:
        self.reports: dict[Holder, Progress] = {}
        self._streams: Counter[Holder] = Counter()

    @contextmanager
    def attending(self, job: str, host: str) -> Iterator[None]:
        """While a stream of the member is open."""
        self._streams[job, host] += 1
        try:
            yield
        finally:
            self._streams[job, host] -= 1

    def attends(self, job: str, host: str) -> bool:
        return self._streams[job, host] > 0

    def forget(self, job: str) -> None:
        """Before a new job of that name."""
        for holder in [h for h in self.reports if h[0] == job]:
            del self.reports[holder]
