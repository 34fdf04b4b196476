# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Orders of events that the simulation found to go wrong, one scenario each."""

from __future__ import annotations

import pytest

from netfold.controller.jobs.records import Transport
from netfold.controller.lifecycle.member_status import MemberStatus, OpenStream
from tests.simulation.program import JobSpec
from tests.simulation.run import run
from tests.simulation.scenario import Scenario, Step


def job(name: str, *workers: str, **changes: object) -> JobSpec:
    chosen = {
        "scheme": "panama", "rate": 40, "queue": True, "priority": 0, "is_elastic": False, "work_s": 5.0, **changes,
    }  # fmt: skip
    return JobSpec(name, workers, **chosen)  # type: ignore[arg-type]


def fill_disk(at_s: float, lasts_s: float) -> Step:
    return Step(at_s, "fill_disk", (lasts_s,))


HOSTS = ("h1", "h2", "h3", "h4")

SCENARIOS = {
    "workers leave while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3"),)),
        fill_disk(4.0, 20.0),
    ),
    "a lease runs out while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=60.0),)),
        Step(8.0, "kill_member", ("a", "h1")),
        fill_disk(9.0, 8.0),
    ),
    "a job is queued and could run while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", rate=100, work_s=4.0),)),
        Step(2.0, "submit", (job("b", "h1", "h3", rate=100),)),
        Step(8.0, "cancel", ("a",)),
        fill_disk(8.02, 10.0),
    ),
    "a running job's switches connect again while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=30.0),)),
        Step(6.0, "request_epoch", ("a", "h1")),
        fill_disk(6.05, 12.0),
        Step(6.5, "drop_connections", ("leaf1",)),
        Step(6.5, "drop_connections", ("leaf2",)),
    ),
    "a job has to move while the disk is full": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=30.0),)),
        fill_disk(8.0, 6.0),
        Step(8.1, "power_cut", ("spine1", 20.0)),
    ),
    "the planner crashes in a repair of a job that is done meanwhile": (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=8.0),)),
        Step(4.9, "crash_planner"),
        Step(5.0, "hang", ("leaf2", 20.0)),
    ),
    "the store is restored, and a job gets slots that have seen a later epoch": (
        Step(0.5, "back_up_store"),
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=2.0),)),
        Step(2.0, "request_epoch", ("a", "h1")),
        Step(12.0, "restore_store", (1.0,)),
        Step(14.0, "submit", (job("b", "h2", "h4", work_s=2.0),)),
    ),
    "the store is restored, with a lower term than its switches have seen": (
        Step(0.5, "back_up_store"),
        Step(1.0, "restart_controller", (0.5,)),
        Step(3.0, "restart_controller", (0.5,)),
        Step(5.0, "restore_store", (1.0,)),
        Step(8.0, "submit", (job("b", "h2", "h4", work_s=2.0),)),
    ),
    "a queued job is impossible once it has lost a worker": (
        Step(1.0, "submit", (job("a", "h1", "h2", rate=100, work_s=10.0),)),
        Step(2.0, "submit", (job("b", *HOSTS, rate=100, transport=Transport.ROCE, is_elastic=True),)),
        Step(8.0, "kill_member", ("b", "h4")),
    ),
    "a queued job fits once it has lost a worker, beside a job that goes on": (
        Step(1.0, "submit", (job("a", "h1", "h2", rate=100, work_s=90.0),)),
        Step(2.0, "submit", (job("b", "h1", "h3", "h4", rate=100, is_elastic=True),)),
        Step(12.0, "kill_member", ("b", "h1")),
    ),
    "a worker of an elastic job leaves unheard, after the other left": (
        Step(1.0, "submit", (job("a", "h1", "h3", is_elastic=True, work_s=0.5),)),
        Step(1.1, "kill_at_commit", (5, True, 14.0)),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_that_once_went_wrong(name):
    outcome = run(Scenario(1, "two leaves, two spines", SCENARIOS[name]))
    assert not outcome.violation, f"{outcome.violation}\n{outcome.history.tail(80)}"


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("is_after", [False, True])
def test_the_controller_is_killed_at_any_commit_of_a_short_job(number, is_after):
    steps = (
        Step(1.0, "submit", (job("a", "h1", "h3", work_s=1.0),)),
        Step(0.9, "kill_at_commit", (number, is_after, 1.0)),
    )
    outcome = run(Scenario(2, "two leaves, two spines", steps))
    assert not outcome.violation, f"{outcome.violation}\n{outcome.history.tail(80)}"


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
