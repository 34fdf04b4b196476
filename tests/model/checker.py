# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Breadth-first search over all states of a `System`, and backward reachability for progress."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from tests.model.network import Violation

State = Hashable


class System(Protocol):
    """A system to explore: a start, the steps from a state, and where nothing is left to do."""

    def start(self) -> Any: ...

    def finished(self, state: Any) -> bool: ...

    def successors(self, state: Any) -> Iterator[tuple[str, Any]]: ...


@dataclass(frozen=True)
class Report:
    states: int
    steps: int


class TooManyStates(RuntimeError):
    """The search was cut; nothing is proved."""


def check(system: System, limit: int = 2_000_000) -> Report:
    """Explores everything reachable. Raises Violation with the shortest path to it, or TooManyStates.

    Safety is asserted in each step (`System.successors`). Progress: a finished state can be reached from
    every state; as losing all packets in flight is a step like any other, also after such a loss.
    """
    start = system.start()
    number = {start: 0}
    states = [start]
    came: list[tuple[int, str]] = [(-1, "start")]
    before: list[list[int]] = [[]]
    steps = 0
    here = 0
    while here < len(states):
        try:
            for action, after in system.successors(states[here]):
                steps += 1
                there = number.get(after)
                if there is None:
                    if len(states) >= limit:
                        raise TooManyStates(f"more than {limit} states")
                    there = number[after] = len(states)
                    states.append(after)
                    came.append((here, action))
                    before.append([])
                before[there].append(here)
        except Violation as violation:
            raise Violation(violation.name, f"{violation.what}\n{_path(came, here)}") from None
        here += 1
    _check_progress(system, states, before, came)
    return Report(len(states), steps)


def _check_progress(
    system: System, states: list[State], before: list[list[int]], came: list[tuple[int, str]]
) -> None:
    waiting = [i for i, state in enumerate(states) if system.finished(state)]
    can_finish = bytearray(len(states))
    for index in waiting:
        can_finish[index] = 1
    while waiting:
        for earlier in before[waiting.pop()]:
            if not can_finish[earlier]:
                can_finish[earlier] = 1
                waiting.append(earlier)
    stuck = can_finish.find(0)
    if stuck >= 0:
        count = can_finish.count(0)
        message = f"{count} of {len(states)} states cannot finish; the first: {states[stuck]}"
        raise Violation("progress", f"{message}\n{_path(came, stuck)}")


def _path(came: list[tuple[int, str]], index: int) -> str:
    actions = []
    while index >= 0:
        index, action = came[index]
        actions.append(action)
    return "\n".join(reversed(actions))


def bounds(small: Iterable[object], large: Iterable[object] = ()) -> list[Any]:
    """Cases of a test: make test has the first one, and long runs alone have the large ones."""
    marks = [pytest.mark.long, pytest.mark.timeout(1800)]
    return [
        *(pytest.param(case, marks=[pytest.mark.slow] if i else []) for i, case in enumerate(small)),
        *(pytest.param(case, marks=marks) for case in large),
    ]


def prove(system: System, limit: int, record_property: Callable[..., None]) -> Report:
    """Check a system, and note what was explored (conftest.py)."""
    report = check(system, limit)
    record_property("states", report.states)
    record_property("steps", report.steps)
    return report
