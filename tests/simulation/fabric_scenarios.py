# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of the fabric's file at bad moments."""

from __future__ import annotations

from tests.simulation.drain_scenarios import long_job
from tests.simulation.program import greedy
from tests.simulation.scenario import Step

_RUNS = Step(1.0, "submit", (long_job("a", "h1", "h3"),))

FABRIC_SCENARIOS = {
    "a host, a spine and a leaf come while a job runs": (
        _RUNS,
        Step(10.0, "change_fabric", ("host comes", "leaf1")),
        Step(15.0, "change_fabric", ("spine comes", 0.0)),
        Step(20.0, "change_fabric", ("leaf comes", 0.0)),
        Step(25.0, "submit", (long_job("b", "new1", "new3-h1", work_s=5.0),)),
    ),
    "a leaf that a job uses goes": (
        _RUNS,
        Step(10.0, "change_fabric", ("node goes", "leaf1")),
    ),
    "a host of a job that waits goes": (
        Step(1.0, "submit", (long_job("a", "h1", "h3", rate=100, min_rate=100, work_s=30.0),)),
        Step(2.0, "submit", (long_job("b", "h1", "h4", rate=100, min_rate=100, work_s=5.0),)),
        Step(10.0, "change_fabric", ("node goes", "h4")),
    ),
    "a link that a job uses shrinks": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=60.0),)),
        Step(10.0, "change_fabric", ("link shrinks", "leaf1-spine1")),
        Step(12.0, "change_fabric", ("link shrinks", "leaf1-spine2")),
        Step(14.0, "change_fabric", ("slots", "leaf1")),
    ),
    "a drained spine goes": (
        _RUNS,
        Step(10.0, "drain", ("spine1", 60.0)),
        Step(30.0, "change_fabric", ("node goes", "spine1")),
        Step(36.0, "restart_controller", (1.0,)),
    ),
    "a host comes after another one is gone": (
        _RUNS,
        Step(10.0, "change_fabric", ("node goes", "h2")),
        Step(16.0, "change_fabric", ("host comes", "leaf1")),
    ),
    "a spine goes while a job is planned over it": (
        Step(2.0, "cordon", ("spine2", 5.0)),
        Step(5.0, "submit", (long_job("c", "h2", "h4", rate=20),)),
        Step(9.9, "submit", (long_job("a", "h1", "h3", rate=20),)),
        Step(9.95, "submit", (long_job("b", "h2", "h4", rate=20),)),
        Step(12.0, "change_fabric", ("node goes", "spine2")),
    ),
    "the queue of a link changes while a job runs": (
        _RUNS,
        Step(10.0, "change_fabric", ("queue", "leaf1-spine1")),
        Step(20.0, "change_fabric", ("queue", "leaf1-spine2")),
    ),
    "the controller dies right before it has stored a fabric": (
        _RUNS,
        Step(9.9, "kill_at_commit", (1, False, 2.0)),
        Step(10.0, "change_fabric", ("host comes", "leaf1")),
    ),
    "the controller dies right after it has stored a fabric": (
        _RUNS,
        Step(9.9, "kill_at_commit", (1, True, 2.0)),
        Step(10.0, "change_fabric", ("host comes", "leaf1")),
    ),
    "the disk is full when the fabric changes": (
        _RUNS,
        Step(9.0, "fill_disk", (12.0,)),
        Step(10.0, "change_fabric", ("spine comes", 0.0)),
    ),
    "a switch is away when the fabric changes": (
        _RUNS,
        Step(9.0, "power_cut", ("spine1", 10.0)),
        Step(10.0, "change_fabric", ("spine comes", 0.0)),
    ),
}
