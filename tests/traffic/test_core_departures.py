# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that leave a job while others stay, in virtual time (docs/reference/protocol.md, 5.7). Calls that they have
finished end in the sum of all; later ones in the sum of those that stay, or in WORKERS_LEFT; none by its deadline."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from netfold.traffic.engine.engine import NEVER, Status
from netfold.traffic.membership.assignment import Assignment, WorkersLeft
from tests.traffic.cores import Core, Fabric, assignment

LANES, SLOTS = 32, 16
STEPS = 100_000


@dataclass
class Program:
    """A worker's calls: `calls` in all. Of each submitted one: input, result, handle."""

    core: Core
    calls: int
    submitted: list[tuple[np.ndarray, np.ndarray, int]] = field(default_factory=list)

    def statuses(self) -> list[Status]:
        return [self.core.status(call) for _, _, call in self.submitted]

    def has_ended(self, statuses: list[Status]) -> bool:
        """`statuses`: of all submitted calls."""
        return Status.PENDING not in statuses and (
            len(statuses) == self.calls or statuses[-1:] == [Status.WORKERS_LEFT]
        )


class Job:
    """Programs, and the controller's part: which worker has left, in which epoch, and which needs another one."""

    def __init__(
        self, calls: list[int], seed: int, *, elastic: bool, loss: float, shares: tuple[float, ...]
    ) -> None:
        self.rng = random.Random(seed)
        self.elastic = elastic
        self.shares = shares
        self.programs = [Program(Core(), n) for n in calls]
        self.members = list(self.programs)  # of the present epoch
        self.fabric = Fabric([p.core for p in self.programs], self.rng, loss, loss)
        self.departed: list[Program] = []
        self.epoch = 0
        self.epochs_of: dict[int, list[Program]] = {}
        self.begin()

    def begin(self) -> None:
        """The next epoch: without those that left if it was requested for that."""
        self.epoch += 1
        self.members = [p for p in self.members if p not in self.departed]
        self.fabric.cores = [p.core for p in self.members]
        self.fabric.in_transit.clear()
        self.epochs_of[self.epoch] = list(self.members)
        self.fabric.begin([self._part(rank) for rank in range(len(self.members))])

    def _part(self, rank: int) -> Assignment:
        part = assignment(rank, len(self.members), LANES, SLOTS, shares=self.shares, epoch=self.epoch)
        trees = tuple(replace(tree, child=rank) for tree in part.trees)
        return replace(part, trees=trees, workers_left=self._workers_left())

    def _workers_left(self) -> WorkersLeft | None:
        here = [p for p in self.departed if p in self.members]
        gone = [] if self.elastic else [p for p in self.departed if p not in self.members]
        if not here and not gone:
            return None
        calls = min(p.core.totals().next_call for p in here + gone)
        return WorkersLeft(
            ("someone",), self.epoch if here else 0, calls, 0 if gone else calls, not self.elastic
        )

    def leave(self, program: Program) -> None:
        self.departed.append(program)
        program.core.abort()
        self.fabric.unreachable.add(self.members.index(program))
        part = self._part(0)
        for other in self.members:
            if other is not program:
                other.core.set_departures(part)

    def run(self, abort: frozenset[int] = frozenset(), restart: int = -1) -> None:
        """Until all programs have ended. Programs in `abort` leave with calls in flight. At step `restart` a new epoch
        starts for another reason."""
        for step in range(STEPS):
            for number, program in enumerate(self.programs):
                if program in self.departed:
                    continue
                statuses = program.statuses()
                while (
                    statuses.count(Status.PENDING) < 3
                    and len(statuses) < program.calls
                    and Status.WORKERS_LEFT not in statuses
                ):
                    self._submit(program)
                    statuses = program.statuses()
                in_calls = number in abort and statuses.count(Status.DONE) >= program.calls - 2
                if program.has_ended(statuses) or in_calls:
                    self.leave(program)
            if len(self.departed) == len(self.programs):
                return
            if step == restart:
                self._restart()
            self.fabric.step()
            if any(
                p.core.totals().unusable_epoch == self.epoch for p in self.members if p not in self.departed
            ):
                self.begin()
                self.fabric.unreachable.clear()
        pytest.fail("a call did not end")

    def _restart(self) -> None:
        """As after lost registers: the same trees, with those that left."""
        departed, self.departed = self.departed, []
        self.begin()
        self.departed = departed
        part = self._part(0)
        for program in self.members:
            if program not in departed and part.workers_left is not None:
                program.core.set_departures(part)

    def _submit(self, program: Program) -> None:
        call = len(program.submitted)
        array = np.random.default_rng(self.rng.getrandbits(32)).integers(-99, 99, 1 + call * 37 % 700)
        array = array.astype(np.float32)
        program.submitted.append((array.copy(), array, program.core.submit(array, deadline=NEVER)))

    def check(self, strict: bool = True) -> None:
        """Each call's result is the sum of one set of programs, the same wherever it is done."""
        for call in range(max(p.calls for p in self.programs)):
            there = [p for p in self.programs if call < len(p.submitted)]
            done = [p for p in there if p.statuses()[call] is Status.DONE]
            if not done:
                continue
            if strict:
                assert len({p.submitted[call][1].tobytes() for p in done}) == 1, f"call {call}"
            for program in done:
                result = program.submitted[call][1]
                sums = [
                    np.sum([p.submitted[call][0] for p in members], axis=0)
                    for members in self.epochs_of.values()
                    if all(call < len(p.submitted) for p in members) and program in members
                ]
                assert any(np.array_equal(result, s) for s in sums), f"call {call}"
                if not self.elastic:
                    np.testing.assert_array_equal(result, sums[0], f"call {call}: of fewer than all")


TREES = pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.3, 0.2)], ids=["one tree", "three trees"])
LOSS = pytest.mark.parametrize("loss", [0.0, 0.1])
CALLS = pytest.mark.parametrize("calls", [[6, 6, 6], [3, 6, 6], [3, 5, 8], [0, 4, 4], [1, 1, 7]], ids=str)


def few_and_more(few: int, count: int) -> pytest.MarkDecorator:
    """`seeds`: the first few of so many; the others are a longer proof."""
    more = pytest.param(range(few, count), marks=pytest.mark.long)
    return pytest.mark.parametrize("seeds", [range(few), more], ids=["few seeds", "more seeds"])


@TREES
@LOSS
@CALLS
@pytest.mark.parametrize("elastic", [True, False])
def test_different_numbers_of_calls(calls, elastic, loss, shares):
    for seed in range(4):
        job = Job(calls, seed, elastic=elastic, loss=loss, shares=shares)
        job.run()
        job.check()
        fewest = min(calls)
        for program in job.programs:
            expected = program.calls if elastic else min(program.calls, fewest)
            assert program.statuses().count(Status.DONE) == expected
            if not elastic and program.calls > fewest:
                assert program.statuses()[fewest] is Status.WORKERS_LEFT
        if len(set(calls)) == 1:
            assert job.epoch == 1, "the end of training needs no other epoch"


@LOSS
@pytest.mark.parametrize("elastic", [True, False])
@pytest.mark.parametrize("leavers", [{0}, {2}, {0, 1}])
@few_and_more(5, 10)
def test_workers_that_leave_with_calls_in_flight(seeds, leavers, elastic, loss):
    for seed in seeds:
        job = Job([8, 8, 8], seed, elastic=elastic, loss=loss, shares=(0.6, 0.4))
        job.run(abort=frozenset(leavers))
        job.check(strict=False)


@pytest.mark.parametrize("elastic", [True, False])
@pytest.mark.parametrize("calls", [[6, 6, 6], [3, 5, 8]], ids=str)
@few_and_more(10, 30)
def test_a_new_epoch_for_another_reason_while_workers_leave(seeds, calls, elastic):
    for seed in seeds:
        job = Job(calls, seed, elastic=elastic, loss=0.05, shares=(0.6, 0.4))
        job.run(restart=random.Random(seed).randrange(1, 600))
        job.check(strict=False)


def test_without_another_epoch_the_calls_fail():
    job = Job([3, 6], 0, elastic=True, loss=0.0, shares=(1.0,))
    job.begin = job.programs[1].core.fail_epoch_waiters  # type: ignore[method-assign]
    job.run()
    assert set(job.programs[1].statuses()[3:]) == {Status.WORKERS_LEFT}
