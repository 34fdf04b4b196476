# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Two controllers share a store in etcd, and one of them, or its way to etcd, fails at a bad moment."""

from __future__ import annotations

from tests.simulation.drain_scenarios import long_job
from tests.simulation.program import job
from tests.simulation.scenario import Step

_RUNS = (
    Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
    Step(2.0, "submit", (long_job("b", "h2", "h4"),)),
)


def _cut(at_s: float, *, requests: bool, answers: bool, late_s: float, lasts_s: float) -> Step:
    """The leader's way to etcd."""
    return Step(at_s, "cut_etcd", (0, requests, answers, late_s, lasts_s))


LEADER_SCENARIOS = {
    "a leader is killed": (*_RUNS, Step(10.0, "kill_replica", (0, 20.0))),
    "commits of a leader arrive when another one leads": (
        *_RUNS,
        _cut(9.9, requests=True, answers=True, late_s=9.0, lasts_s=30.0),
        Step(10.0, "submit", (job("c", "h1", "h4"),)),
        Step(12.5, "kill_replica", (0, 20.0)),
    ),
    "a commit is made, and its answer is lost": (
        *_RUNS,
        _cut(9.9, requests=True, answers=False, late_s=0.0, lasts_s=4.5),
        Step(10.0, "submit", (job("c", "h1", "h4"),)),
    ),
    "a commit is made, its answer is lost, and nothing else is ever committed": (
        _cut(9.9, requests=True, answers=False, late_s=0.0, lasts_s=4.5),
        Step(10.0, "submit", (job("c", "h1", "h4"),)),
    ),
    "the answer of a commit is lost, and comes when it is repeated": (
        *_RUNS,
        Step(10.0, "submit", (job("c", "h1", "h4"),)),
        _cut(9.9, requests=True, answers=False, late_s=0.0, lasts_s=1.0),
    ),
    "a leader is cut off from etcd for long": (
        *_RUNS,
        _cut(10.0, requests=False, answers=False, late_s=0.0, lasts_s=30.0),
    ),
    "the loop of a leader hangs": (*_RUNS, Step(10.0, "hang_replica", (0, 45.0))),
    "a leader steps down": (*_RUNS, Step(10.0, "step_down"), Step(30.0, "step_down")),
    "a leader steps down, and leads again soon": (*_RUNS, Step(10.0, "step_down"), Step(13.5, "step_down")),
    "a leader is stopped while it changes a switch that forgets ids": (
        Step(0.0, "forget_ids", ("leaf1",)),
        Step(0.0, "forget_ids", ("leaf2",)),
        Step(8.0, "slow", ("leaf1", 3.0, 30.0)),
        Step(8.0, "slow", ("leaf2", 3.0, 30.0)),
        *(Step(8.5 + n / 10, "submit", (long_job(f"j{n}", "h1", "h3", rate=10),)) for n in range(6)),
        Step(10.0, "stop_replica", (0, 2.6)),
        Step(20.0, "stop_replica", (0, 2.6)),
        Step(30.0, "stop_replica", (0, 3.0)),
    ),
    "renewals are answered late before a leader is cut off": (
        Step(0.0, "forget_ids", ("leaf1",)),
        Step(0.0, "forget_ids", ("leaf2",)),
        Step(8.0, "slow", ("leaf1", 1.0, 30.0)),
        Step(8.0, "slow", ("leaf2", 1.0, 30.0)),
        *(Step(8.5 + n / 10, "submit", (long_job(f"j{n}", "h1", "h3", rate=10),)) for n in range(6)),
        _cut(9.2, requests=True, answers=True, late_s=0.9, lasts_s=5.0),
        _cut(10.5, requests=False, answers=False, late_s=0.0, lasts_s=10.0),
    ),
    "a leader is stopped for long": (*_RUNS, Step(10.0, "stop_replica", (0, 12.0))),
    "etcd has no majority for long": (*_RUNS, Step(10.0, "lose_majority", (25.0,))),
    "a leader dies at a commit, and the next one, too": (
        *_RUNS,
        Step(9.9, "kill_at_commit", (1, True, 5.0)),
        Step(10.0, "submit", (job("c", "h1", "h4"),)),
        Step(11.0, "kill_at_commit", (2, False, 5.0)),
    ),
}
