# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the sums of a job are right, and whether it came to the end that its fate allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netfold.traffic.errors import JobFailedError, WorkersLeftError
from tests.testbed.trial.drawing import TrialJob
from tests.testbed.trial.records import Sum, WorkerRecord
from tests.testbed.trial.sums import ELEMENTS

LATE = ("did not join within",)
"""Reasons of jobs that end because a machine is slow: the job file's own time was over."""


@dataclass(frozen=True)
class Ending:
    """How a job ended, as the controller tells: done, failed or canceled."""

    state: str
    reason: str

    @property
    def is_late(self) -> bool:
        return any(words in self.reason for words in LATE)


def violations_of(
    job: TrialJob, records: Sequence[WorkerRecord], ending: Ending, *, is_canceled: bool
) -> list[str]:
    """Empty: all is right. `is_canceled`: an operator canceled it."""
    found = [*_sums(job, records), *_end(job, records, ending, is_canceled=is_canceled)]
    return [f"{job.name}: {text}" for text in found]


# ---- sums ---------------------------------------------------------------------------------------------


class _Salts:
    """Which salts a worker's contribution to a call may have: those of all its processes. A result that is handed over
    has a later epoch than its contributions."""

    def __init__(self, job: TrialJob, records: Sequence[WorkerRecord]) -> None:
        self._of_calls: dict[tuple[int, int], set[int]] = defaultdict(set)
        self._without_result: dict[int, set[int]] = defaultdict(set)
        for record in records:
            index = job.workers.index(record.host)
            for turn in record.turns:
                if turn.sum is None:
                    self._without_result[index].add(turn.salt)
                else:
                    self._of_calls[index, turn.sum.call].add(turn.salt)

    def allow(self, index: int, call: int, salt: int) -> bool:
        return salt in self._of_calls[index, call] | self._without_result[index]


def _sums(job: TrialJob, records: Sequence[WorkerRecord]) -> Iterator[str]:
    salts, found = _Salts(job, records), defaultdict[int, list[tuple[str, Sum]]](list)
    for record in records:
        for result in record.sums:
            where = f"call {result.call} of {record.host}"
            yield from (f"{where}: {text}" for text in _sum(job, record.host, result, salts))
            for other in found[result.call]:
                if other[1].digest != result.digest and not _is_made_again(job, other, (record.host, result)):
                    yield f"{where}: {other[0]} has another result"
            found[result.call].append((record.host, result))


def _is_made_again(job: TrialJob, *results: tuple[str, Sum]) -> bool:
    """Two results, by worker: once those that have one have left, an elastic job makes the call again without them
    (protocol.md, 5.7). Their successors may take part, with salts of their own."""
    (host, first), (_, again) = sorted(results, key=lambda found: found[1].epoch)
    index = job.workers.index(host)
    mine, later = (result.contents.shares.get(index) for result in (first, again))
    is_without = later is None or (mine is not None and mine.salt != later.salt)
    return job.is_elastic and first.epoch < again.epoch and is_without


def _sum(job: TrialJob, host: str, result: Sum, salts: _Salts) -> Iterator[str]:
    contents = result.contents
    if contents.stray:
        yield f"{contents.stray} elements are no sum of the workers' arrays"
    for index, share in contents.shares.items():
        if index >= len(job.workers):
            yield f"a worker with index {index} contributed, and there is none"
            continue
        name = job.workers[index]
        if share.wrong or not salts.allow(index, result.call, share.salt):
            yield f"{name} contributed something else"
        if share.elements != ELEMENTS and not job.quorum:
            yield f"{name} is in {share.elements} of {ELEMENTS} elements"
    if job.quorum:
        fewest = 1 if job.is_elastic else job.quorum
    else:
        fewest = 1 if job.is_elastic else len(job.workers)
        if job.workers.index(host) not in contents.shares:
            yield "its own contribution is missing"
    if contents.fewest < fewest:
        yield f"an element has {contents.fewest} contributors; expected {fewest}"


# ---- ends ---------------------------------------------------------------------------------------------


def _end(
    job: TrialJob, records: Sequence[WorkerRecord], ending: Ending, *, is_canceled: bool
) -> Iterator[str]:
    killed = [r.host for r in records if r.is_killed]
    yield from (f"{r.host} crashed: {r.crash}" for r in records if r.crash)
    if ending.state == "canceled":
        if not is_canceled:
            yield "it is canceled, and no operator canceled it"
    elif ending.state == "failed":
        is_fate = not job.is_elastic and any(host in ending.reason for host in killed)
        if not is_fate and not ending.is_late:
            yield f"it failed: {ending.reason}"
    elif ending.state != "done":
        yield f"it is still {ending.state}: {ending.reason}"
    for record in records:
        yield from _worker_end(job, record, ending, is_whole=not killed)


def _worker_end(job: TrialJob, record: WorkerRecord, ending: Ending, *, is_whole: bool) -> Iterator[str]:
    if record.is_killed or record.crash:
        return
    host, error = record.host, record.error
    told = f"{host} ended with {error}: {record.text}"
    if ending.state != "done" or record.is_newcomer:  # a job need not take a newcomer: it may be about to end
        if error not in ("", JobFailedError.__name__, WorkersLeftError.__name__):
            yield told
        return
    if job.is_elastic and error:
        yield told
    if error not in ("", WorkersLeftError.__name__):
        yield told
    if job.quorum or job.is_elastic or not is_whole:
        return
    wanted, found = min(job.calls.values()), [s.call for s in record.sums]
    if found != list(range(wanted)):
        yield f"{host} has the results of {len(found)} calls; expected those of calls 0 to {wanted - 1}"
    if bool(error) != (job.calls[host] > wanted):
        yield f"{host}, which makes {job.calls[host]} calls, ended with '{error}'; one leaves after {wanted}"
