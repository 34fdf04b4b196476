# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that join or rejoin a running job, in virtual time: they continue with the members' call, and every sum is
over exactly its members."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from netfold.traffic.engine.engine import Status
from netfold.traffic.errors import InvalidAssignmentError
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.numerics import ReduceOp
from tests.traffic.cores import Core, Fabric, assignment

LANES, SLOTS = 32, 16
ENGINE = Path(__file__).resolve().parents[2] / "traffic" / "engine"


def parts_of(workers: int, epoch: int, shares: tuple[float, ...]) -> list[Assignment]:
    found = []
    for rank in range(workers):
        part = assignment(rank, workers, LANES, SLOTS, shares=shares, epoch=epoch)
        trees = tuple(replace(tree, child=rank) for tree in part.trees)
        found.append(replace(part, trees=trees, allow_newcomers=epoch > 1))
    return found


class Team:
    """The members, each with its submitted calls: all submit the same calls in the same order."""

    def __init__(self, workers: int, seed: int, shares: tuple[float, ...], loss: float) -> None:
        self.rng = random.Random(seed)
        self.fabric = Fabric([Core() for _ in range(workers)], self.rng, loss, loss)
        self.shares = shares
        self.epoch = 0
        self.calls: list[dict[int, tuple[np.ndarray, int]]] = [{} for _ in range(workers)]
        self.turn = [0] * workers
        self.inputs: dict[tuple[int, Core], np.ndarray] = {}
        self.begin()

    def begin(self) -> None:
        self.epoch += 1
        self.fabric.in_transit.clear()
        self.fabric.begin(parts_of(len(self.fabric.cores), self.epoch, self.shares))

    def leave(self, rank: int) -> None:
        for rows in (self.fabric.cores, self.calls, self.turn):
            del rows[rank]

    def join(self, turn: int) -> None:
        """Adds a newcomer, whose program starts with the members' call."""
        self.fabric.cores.append(Core())
        self.calls.append({})
        self.turn.append(turn)

    def submit(self, rank: int) -> None:
        turn = self.turn[rank]
        core = self.fabric.cores[rank]
        size = 1 + turn * 37 % 700
        array = np.random.default_rng(self.rng.getrandbits(32)).integers(-99, 99, size).astype(np.float32)
        self.inputs[turn, core] = array.copy()
        self.calls[rank][turn] = (array, core.submit(array, ReduceOp.SUM))
        self.turn[rank] += 1

    def pending(self, rank: int) -> list[int]:
        core = self.fabric.cores[rank]
        return [t for t, (_, call) in self.calls[rank].items() if core.status(call) is Status.PENDING]

    def run(self, until: int, steps: int | None = None) -> None:
        """Runs all calls before `until`, or `steps` steps."""
        for step in range(200_000 if steps is None else steps):
            for rank in range(len(self.turn)):
                while self.turn[rank] < until and len(self.pending(rank)) < 3:
                    self.submit(rank)
            if not any(self.pending(rank) for rank in range(len(self.turn))):
                return
            self.fabric.step()
            assert step < 199_999, "no worker is finished"

    def check(self, turn: int, members: list[Core]) -> None:
        got = {}
        for core, calls in zip(self.fabric.cores, self.calls, strict=True):
            if turn in calls:
                assert core.status(calls[turn][1]) is Status.DONE
                got[core] = calls[turn][0]
        assert len({a.tobytes() for a in got.values()}) == 1
        np.testing.assert_array_equal(
            next(iter(got.values())), np.sum([self.inputs[turn, c] for c in members], axis=0)
        )


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.3, 0.2)], ids=["one tree", "three trees"])
@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(2))
def test_a_newcomer_continues_with_the_members_call(shares, loss, seed):
    team = Team(3, seed, shares, loss)
    team.run(5)
    before = list(team.fabric.cores)
    for turn in range(5):
        team.check(turn, before)
    team.run(12, steps=team.rng.randrange(1, 400))
    first = max((min(team.pending(rank), default=turn) for rank, turn in enumerate(team.turn)), default=0)
    team.join(first)  # with the first call that no worker has finished
    team.begin()
    team.run(15)
    for turn in range(15):
        team.check(turn, team.fabric.cores if turn >= first else before)


@pytest.mark.parametrize("seed", range(3))
def test_workers_leave_and_join_and_each_sum_is_of_the_members(seed):
    """A worker is lost in the middle of calls, and rejoins as a new process without state."""
    team = Team(4, seed, (0.6, 0.4), 0.02)
    end = 6
    for _ in range(4):
        team.run(end)
        team.check(end - 1, team.fabric.cores)
        if team.rng.random() < 0.5 and len(team.turn) > 2:
            team.leave(team.rng.randrange(len(team.turn)))
        else:
            team.join(end)
        team.begin()
        end += 5
        team.run(end)
        for turn in range(end - 5, end):
            team.check(turn, team.fabric.cores)
    team.fabric.cores, team.calls, team.turn = [Core(), Core()], [{}, {}], [0, 0]
    team.begin()  # no worker with call state is left: newcomers start with each other
    team.run(3)
    team.check(2, team.fabric.cores)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Core, int], None]:
    """Sets the call number of a core: to make so many calls would take hours."""
    program = tmp_path_factory.mktemp("offsets") / "offsets"
    source = f"""#include <stddef.h>
#include <stdio.h>
#include "{ENGINE / "session/state.h"}"
int main(void) {{
    printf("%zu %zu", offsetof(struct nf_core, next_call), offsetof(struct nf_core, stable_until));
}}"""
    subprocess.run(["gcc", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
    offsets = [int(word) for word in subprocess.check_output([program], text=True).split()]

    def age(core: Core, calls: int) -> None:
        for offset in offsets:
            ctypes.c_int64.from_address(core._core + offset).value = calls

    return age


@pytest.mark.parametrize("calls", [2**24 - 2, 2**24 + 5, 2**31 + 1, 7 * 2**32])
def test_a_newcomer_synchronizes_with_a_job_of_millions_of_calls(
    older: Callable[[Core, int], None], calls: int
):
    """Call numbers are compared modulo nine: with those modulo a power of two a newcomer would be in another call."""
    team = Team(3, 1, (0.6, 0.4), 0.02)
    for core in team.fabric.cores:
        older(core, calls)
    team.run(4)
    for _ in range(3):
        end = max(team.turn) + 4
        team.join(max(team.turn))
        team.begin()
        team.run(end)
        for turn in range(end - 4, end):
            team.check(turn, team.fabric.cores)
        team.leave(0)
        team.begin()


def test_newcomers_need_32_lanes():
    part = assignment(lanes=16)
    with pytest.raises(InvalidAssignmentError, match="32 lanes"):
        replace(part, allow_newcomers=True)


@pytest.mark.parametrize(("seed", "loss"), [(0, 0.0), (5, 0.0), (24, 0.0), (12, 0.1), (16, 0.1), (25, 0.1)])
def test_a_newcomer_is_no_holder_of_earlier_results(seed, loss):
    """The epoch changes again during a handover of results that the newcomer does not have."""
    team = Team(3, seed, (0.6, 0.4), loss)
    team.run(12, steps=team.rng.randrange(1, 300 if loss else 400))
    before = list(team.fabric.cores)
    first = max((min(team.pending(rank), default=turn) for rank, turn in enumerate(team.turn)), default=0)
    team.join(first)
    for _ in range(2 if loss else 1):
        team.begin()
        team.run(first + 3, steps=team.rng.randrange(1, 200 if loss else 150))
    team.begin()
    team.run(first + 3)
    for turn in range(first + 3):
        team.check(turn, team.fabric.cores if turn >= first else before)
