# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members as they are now: who has a stream open, and what each reported last. Nothing of it outlives the
controller, and nothing of a job that the book has forgotten stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

Holder = tuple[str, str]
"""Job and host."""


@dataclass(frozen=True)
class TreeProgress:
    """How a tree does for a worker, since its epoch began."""

    tree: int
    results: int = 0
    marked: int = 0
    retransmits: int = 0
    rtt_ms: float = 0.0
    rtt_least_ms: float = 0.0

    @property
    def marks(self) -> float:
        """The part of its results that had a congestion mark."""
        return self.marked / self.results if self.results else 0.0

    @property
    def losses(self) -> float:
        """Packets that were sent again, over results."""
        return self.retransmits / self.results if self.results else 0.0

    def since(self, before: TreeProgress) -> TreeProgress:
        """What came after an earlier report."""
        return replace(
            self,
            results=self.results - before.results,
            marked=self.marked - before.marked,
            retransmits=self.retransmits - before.retransmits,
        )


@dataclass(frozen=True)
class Progress:
    """What a member has reported, since it joined; `lately` is what its trees did between its last two reports that
    told of new results."""

    chunks: int = 0
    retransmits: int = 0
    overflows: int = 0
    goodput_mbps: float = 0.0
    trees: tuple[TreeProgress, ...] = ()
    lately: tuple[TreeProgress, ...] = ()


class Presence:
    def __init__(self) -> None:
        self._reported: dict[str, dict[str, Progress]] = {}
        self._streams: Counter[Holder] = Counter()
        self._told: set[Holder] = set()

    def heard(self, job: str, host: str, progress: Progress) -> None:
        """Of a member of the job, and of nobody else."""
        last = self.progress(job, host)
        self._reported.setdefault(job, {})[host] = replace(progress, lately=_lately(last, progress))

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

    def tell(self, job: str, host: str) -> None:
        """The member has had an assignment."""
        self._told.add((job, host))

    def was_told(self, job: str, host: str) -> bool:
        return (job, host) in self._told

    def forget(self, job: str) -> None:
        """Before a new job of that name."""
        self._reported.pop(job, None)
        self._told = {t for t in self._told if t[0] != job}

    def keep(self, jobs: Container[str]) -> None:
        """Forget all others."""
        for gone in [j for j in self._reported if j not in jobs]:
            del self._reported[gone]
        self._told = {t for t in self._told if t[0] in jobs}


def _lately(last: Progress, now: Progress) -> tuple[TreeProgress, ...]:
    """Trees of a new epoch count from 0; what is told again says nothing new."""
    if now.trees == last.trees:
        return last.lately
    before = {t.tree: t for t in last.trees}
    return tuple(t.since(before[t.tree]) if _goes_on(before, t) else t for t in now.trees)


def _goes_on(before: Mapping[int, TreeProgress], tree: TreeProgress) -> bool:
    return tree.tree in before and before[tree.tree].results <= tree.results
