# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members as they are now: who has a stream open, and what each reported last. Nothing of it outlives the
controller, and nothing of a job that the book has forgotten stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
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
        self._reported: dict[str, dict[str, Progress]] = {}
        self._streams: Counter[Holder] = Counter()

    def heard(self, job: str, host: str, progress: Progress) -> None:
        """Of a member of the job, and of nobody else."""
        self._reported.setdefault(job, {})[host] = progress

    def progress(self, job: str, host: str) -> Progress:
        return self._reported.get(job, {}).get(host, Progress())

    def of(self, job: str) -> dict[str, Progress]:
        """What members of a job reported, by host; a copy."""
        return dict(self._reported.get(job, {}))

    @contextmanager
    def attending(self, job: str, host: str) -> Iterator[None]:
        """While a stream of the member is open."""
        self._streams[job, host] += 1
        try:
            yield
        finally:
            self._streams[job, host] -= 1
            if not self._streams[job, host]:
                del self._streams[job, host]

    def attends(self, job: str, host: str) -> bool:
        return self._streams[job, host] > 0

    def forget(self, job: str) -> None:
        """Before a new job of that name."""
        self._reported.pop(job, None)

    def keep(self, jobs: Container[str]) -> None:
        """Forget all others."""
        for gone in [j for j in self._reported if j not in jobs]:
            del self._reported[gone]
