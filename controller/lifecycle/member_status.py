# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Holds open streams and latest reports of members. None of it is stored; rows of deleted jobs are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from netfold.protocol import netfold_pb2 as pb

Holder = tuple[str, str]
"""Name of the job and host of the member."""


class TreeProgress(NamedTuple):
    """Statistics of one worker's tree since the start of its epoch. `window`: congestion window, chunks.
    `open_slot`: 1 + the slot of the chunk in flight for longest, 0: none is. A tuple:
    each heartbeat makes some, and a frozen dataclass takes several times as long."""

    tree: int
    results: int = 0
    marked: int = 0
    retransmits: int = 0
    rtt_ms: float = 0.0
    min_rtt_ms: float = 0.0
    window: int = 0
    open_slot: int = 0

    @property
    def marks(self) -> float:
        """Fraction of results with an ECN mark."""
        return self.marked / self.results if self.results else 0.0

    @property
    def losses(self) -> float:
        """Retransmitted packets over results."""
        return self.retransmits / self.results if self.results else 0.0

    def since(self, before: TreeProgress) -> TreeProgress:
        """The statistics since an earlier report."""
        return TreeProgress(
            self.tree,
            self.results - before.results,
            self.marked - before.marked,
            self.retransmits - before.retransmits,
            self.rtt_ms,
            self.min_rtt_ms,
            self.window,
            self.open_slot,
        )


class CallStatus(NamedTuple):
    """Whether a worker is in its next call, and for how long. `kind`: empty, as long as the call waits for its job
    epoch."""

    in_call: bool
    kind: str = ""
    bytes: int = 0
    for_s: float = 0.0


class Progress(NamedTuple):
    """A member's report since it joined. `lately`: its trees between the last two reports with new results. `call`: of
    the call `next_call`; None: the member does not report its calls. `silent_s`: for how long the worker's process has
    sent nothing to its agent. `at_s`: when the report came, in seconds of the controller's monotonic clock."""

    chunks: int = 0
    retransmits: int = 0
    reencoded_chunks: int = 0
    goodput_mbps: float = 0.0
    trees: tuple[TreeProgress, ...] = ()
    socket_errors: int = 0
    next_call: int = 0
    call: CallStatus | None = None
    silent_s: float = 0.0
    at_s: float = 0.0
    lately: tuple[TreeProgress, ...] = ()


NO_PROGRESS = Progress()
"""The progress of a member that has not reported."""


@dataclass(frozen=True, eq=False)
class OpenStream:
    """A JoinJob stream of a member: the `number`th of its process `process`, which takes part in `generation`. Streams
    are equal only to themselves."""

    job: str
    host: str
    process: int = 0
    number: int = 0
    generation: int = 0

    def is_older(self, other: OpenStream | None) -> bool:
        """Whether `other` is a newer stream of the same process."""
        return other is not None and other.process == self.process != 0 and self.number < other.number


@dataclass(eq=False)
class CallsRequest:
    """A request of the last calls of a job's members. `is_complete` is set when all `awaited` have answered."""

    number: int
    max_calls: int
    awaited: frozenset[str]
    answers: dict[str, pb.CallDump] = field(default_factory=dict)
    is_complete: asyncio.Event = field(default_factory=asyncio.Event)


class MemberStatus:
    def __init__(self) -> None:
        self._reported: dict[str, dict[str, Progress]] = {}
        self._streams: dict[Holder, OpenStream] = {}
        """The newest open stream of each member."""
        self._latest: dict[Holder, OpenStream] = {}
        """The newest stream of each member, whether open or ended."""
        self._assigned: set[Holder] = set()
        self._requests: dict[str, CallsRequest] = {}
        """The newest request of each job."""

    def set_report(self, job: str, host: str, progress: Progress) -> None:
        """Record the progress that a member reports. `host` must be a member of the job."""
        reported = self._reported.get(job)
        if reported is None:
            reported = self._reported[job] = {}
        last = reported.get(host, NO_PROGRESS)
        lately = last.lately if progress.trees == last.trees else progress_delta(last, progress)
        reported[host] = progress._replace(lately=lately)

    def request_calls(self, job: str, hosts: Iterable[str], max_calls: int) -> CallsRequest:
        """Request the last calls of `hosts`. The caller notifies the job's streams."""
        awaited = frozenset(h for h in hosts if self.is_connected(job, h))
        request = CallsRequest(self.calls_request(job).number + 1, max_calls, awaited)
        if not awaited:
            request.is_complete.set()
        self._requests[job] = request
        return request

    def calls_request(self, job: str) -> CallsRequest:
        """The newest request; number 0: there was none."""
        return self._requests.get(job) or CallsRequest(0, 0, frozenset())

    def set_calls(self, job: str, host: str, dump: pb.CallDump) -> None:
        """Take the answer of a member to the newest request."""
        request = self._requests.get(job)
        if request is not None and dump.number == request.number and host in request.awaited:
            del dump.calls[: max(0, len(dump.calls) - request.max_calls)]
            request.answers[host] = dump
            if len(request.answers) == len(request.awaited):
                request.is_complete.set()

    def progress(self, job: str, host: str) -> Progress:
        return self._reported.get(job, {}).get(host, NO_PROGRESS)

    def of(self, job: str) -> dict[str, Progress]:
        """A copy of the reports of a job's members, by host."""
        return dict(self._reported.get(job, {}))

    @contextmanager
    def connected(self, stream: OpenStream) -> Iterator[None]:
        """Count a stream as open within the context; it supersedes earlier ones of the member."""
        holder = (stream.job, stream.host)
        self._streams[holder] = self._latest[holder] = stream
        try:
            yield
        finally:
            if self.is_newest(stream):
                del self._streams[holder]

    def is_late(self, stream: OpenStream) -> bool:
        """Whether a newer stream of the same process was opened before this one arrived."""
        return stream.is_older(self._latest.get((stream.job, stream.host)))

    def is_newest(self, stream: OpenStream) -> bool:
        """Whether no newer stream of the member was opened."""
        return self._streams.get((stream.job, stream.host)) is stream

    def is_connected(self, job: str, host: str) -> bool:
        return (job, host) in self._streams

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def set_assigned(self, job: str, host: str) -> None:
        """Note that the member has received an assignment."""
        self._assigned.add((job, host))

    def is_assigned(self, job: str, host: str) -> bool:
        return (job, host) in self._assigned

    def has_connected(self, job: str, host: str) -> bool:
        """Whether the member has opened a stream since the start of the controller."""
        return (job, host) in self._latest

    def forget(self, job: str) -> None:
        """Delete the rows of an ended job, before a new job of that name."""
        self._reported.pop(job, None)
        self._requests.pop(job, None)
        self._assigned = {t for t in self._assigned if t[0] != job}
        self._latest = {t: s for t, s in self._latest.items() if t[0] != job}

    def keep(self, jobs: Container[str]) -> None:
        """Delete the rows of all other jobs."""
        for ended in [j for j in self._reported if j not in jobs]:
            del self._reported[ended]
        self._requests = {j: r for j, r in self._requests.items() if j in jobs}
        self._assigned = {t for t in self._assigned if t[0] in jobs}
        self._latest = {t: s for t, s in self._latest.items() if t[0] in jobs}


def progress_delta(last: Progress, now: Progress) -> tuple[TreeProgress, ...]:
    """The progress of trees between two reports. Trees of a new epoch count from 0."""
    before = {t.tree: t for t in last.trees}
    lately = []
    for tree in now.trees:
        earlier = before.get(tree.tree)
        if earlier is not None and earlier.results <= tree.results:
            lately.append(tree.since(earlier))
        else:
            lately.append(tree)
    return tuple(lately)
