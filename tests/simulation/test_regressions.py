# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Orders of events that the simulation found to go wrong, one scenario each."""

from __future__ import annotations

import pytest

from netfold.controller.lifecycle.member_status import MemberStatus, OpenStream
from tests.simulation.mutants import MUTANTS
from tests.simulation.regressions import SCENARIOS, job, regression
from tests.simulation.run import run
from tests.simulation.scenario import Scenario, Step, on_engine

SLOW = pytest.mark.slow
QUICK = {m.file: m.scenario for m in reversed(MUTANTS) if m.scenario}.values()
"""One scenario for each file of which a scenario finds a mutant."""


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("etcd", marks=SLOW)])
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else SLOW) for n in SCENARIOS])
def test_a_scenario_that_once_went_wrong(name, engine):
    outcome = run(on_engine(regression(name), engine))
    assert not outcome.violation, f"{outcome.violation}\n{outcome.history.tail(80)}"


SHORT, LONG = (Step(1.0, "submit", (job("a", "h1", "h3", work_s=work_s),)) for work_s in (1.0, 30.0))


@pytest.mark.parametrize("is_after", [False, pytest.param(True, marks=SLOW)])
@pytest.mark.parametrize(
    ("change", "number"),
    [
        *((SHORT, number) for number in range(1, 9)),
        (Step(10.0, "cancel", ("a",)), 1),
        *((Step(10.0, "request_epoch", ("a", "h1")), number) for number in (1, 2)),
        (Step(10.0, "power_cut", ("leaf1", 2.0)), 1),
    ],
    ids=lambda value: value.kind if isinstance(value, Step) else str(value),
)
def test_the_controller_is_killed_at_any_commit_of_a_change(change, number, is_after):
    kill = Step(change.at_s - 0.1, "kill_at_commit", (number, is_after, 1.0))
    steps = (kill, change) if change is SHORT else (LONG, kill, change)
    outcome = run(Scenario(1, "two leaves, two spines", steps))
    assert not outcome.violation, f"{outcome.violation}\n{outcome.history.tail(80)}"
    assert "controller 2 starts" in outcome.history.tail(1000)


def test_a_stream_that_arrives_after_the_one_that_replaced_it_is_not_the_newest():
    """A member's first stream breaks, its packets are still on their way, and arrive behind those of its second."""
    status = MemberStatus()
    first, second = (OpenStream("a", "h1", process=7, number=n) for n in (1, 2))
    with status.connected(second):
        assert status.is_late(first)
        assert not status.is_late(OpenStream("a", "h1", process=8, number=1)), (
            "another process takes its place"
        )
    assert status.is_late(first), "also when the second has ended"
    status.forget("a")
    assert not status.is_late(first)
