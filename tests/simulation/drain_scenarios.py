# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Orders of events around a drain, a scenario for each way in which it may harm a job, or be lost."""

from __future__ import annotations

from tests.simulation.program import JobSpec, greedy, job
from tests.simulation.scenario import Step

ALL_SLOTS = 4096
"""Slots of a switch."""


def long_job(name: str, *workers: str, **changes: object) -> JobSpec:
    return job(name, *workers, **{"work_s": 60.0, **changes})


DRAIN_SCENARIOS = {
    "jobs leave a drained spine": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(1.0, "submit", (long_job("b", "h2", "h4"),)),
        Step(10.0, "drain", ("spine1", 45.0)),
    ),
    "a job stays at a cordoned spine": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(10.0, "cordon", ("spine1", 45.0)),
        Step(20.0, "cordon", ("spine2", 39.0)),
        Step(22.0, "submit", (long_job("b", "h2", "h4", work_s=5.0),)),
    ),
    "a job over a spine that it cannot leave gets a new epoch": (
        Step(1.0, "submit", (long_job("a", "h1", "h4"),)),
        Step(10.0, "drain", ("spine1", 49.0)),
        Step(12.0, "request_epoch", ("a", "h4")),
    ),
    "the controller starts again over a spine that a job cannot leave": (
        Step(1.0, "submit", (long_job("a", "h1", "h4"),)),
        Step(10.0, "drain", ("spine1", 49.0)),
        Step(15.0, "restart_controller", (1.0,)),
    ),
    "one spine is drained, and the other one dies": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(10.0, "drain", ("spine1", 49.0)),
        Step(20.0, "power_cut", ("spine2", 30.0)),
    ),
    "a worker comes again to a job over a spine that it cannot leave": (
        Step(1.0, "submit", (long_job("a", "h1", "h4", "h5", is_elastic=True),)),
        Step(8.0, "kill_member", ("a", "h5")),
        Step(20.0, "drain", ("spine1", 39.0)),
        Step(24.0, "start_member", ("a", "h5")),
    ),
    "a job that has all slots of its switches is over a spine that is drained": (
        Step(1.0, "submit", (job("a", "h1", "h3", scheme="switchml", slots=ALL_SLOTS, work_s=30.0),)),
        Step(10.0, "drain", ("spine1", 20.0)),
    ),
    "the spine that a job leaves a drained one for hangs": (
        Step(1.0, "submit", (job("a", "h1", "h3", scheme="switchml", slots=ALL_SLOTS // 2, work_s=60.0),)),
        Step(10.0, "drain", ("spine1", 49.0)),
        Step(10.0, "hang", ("spine2", 25.0)),
    ),
    "a job is being installed when its spine is drained": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(9.8, "slow", ("leaf1", 2.0, 10.0)),
        Step(9.9, "request_epoch", ("a", "h1")),
        Step(10.5, "drain", ("spine1", 48.0)),
    ),
    "there is room to leave a drained spine when another job has ended": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=60.0),)),
        Step(2.0, "submit", (greedy("b", "h2", "h4", rate=60, work_s=15.0),)),
        Step(10.0, "drain", ("spine1", 49.0)),
        Step(10.0, "drain", ("spine2", 6.0)),
    ),
    "a job leaves a drained spine, though it is bound to a drained leaf": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(10.0, "drain", ("leaf1", 49.0)),
        Step(12.0, "drain", ("spine1", 47.0)),
    ),
    "the controller dies right after it has stored a drain": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(9.9, "kill_at_commit", (1, True, 2.0)),
        Step(10.0, "drain", ("spine1", 49.0)),
    ),
    "the controller dies right before it has stored a drain": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(9.9, "kill_at_commit", (1, False, 2.0)),
        Step(10.0, "drain", ("spine1", 49.0)),
    ),
    "the disk is full when a spine is drained": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(9.0, "fill_disk", (12.0,)),
        Step(10.0, "drain", ("spine1", 49.0)),
    ),
    "a spine is given back while a queued job waits for it": (
        Step(1.0, "drain", ("spine1", 12.0)),
        Step(2.0, "submit", (long_job("a", "h1", "h4", work_s=5.0),)),
    ),
    "the controller starts again right after it has answered a drain": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(6.0, "drain", ("spine1", 53.0)),
        Step(6.4, "restart_controller", (1.0,)),
    ),
    "another job ends while a job is planned to leave a drained spine": (
        Step(1.0, "submit", (greedy("a", "h1", "h3", rate=60, work_s=60.0),)),
        Step(3.0, "submit", (greedy("b", "h2", "h4", rate=60, work_s=60.0),)),
        Step(14.0, "drain", ("spine1", 45.0)),
        Step(14.5, "cancel", ("b",)),
    ),
    "a spine is given back while a job is planned to leave it": (
        Step(1.0, "submit", (long_job("a", "h1", "h3", work_s=20.0),)),
        Step(12.0, "drain", ("spine1", 0.4)),
    ),
    "a link is given back while a worker that joins is planned": (
        Step(1.0, "submit", (long_job("a", "h1", "h4", rate=20, is_elastic=True, scheme="switchml"),)),
        Step(15.0, "add_worker", ("a", "h2")),
        Step(17.0, "start_member", ("a", "h2")),
        Step(19.25, "drain", ("leaf1-spine1", 1.0)),
    ),
    "a leaf is away for as long as it is held": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(1.0, "submit", (long_job("b", "h2", "h4", is_elastic=True),)),
        Step(10.0, "hold", ("leaf1", 45.0)),
        Step(11.0, "black_out", ("leaf1", 40.0)),
    ),
    "the links of a leaf that is held are down": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(10.0, "hold", ("leaf1", 49.0)),
        Step(11.0, "cut_link", ("leaf1", "spine1", 44.0)),
        Step(11.0, "cut_link", ("leaf1", "spine2", 44.0)),
    ),
    "the controller starts again while a leaf is held": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(10.0, "hold", ("leaf1", 49.0)),
        Step(11.0, "black_out", ("leaf1", 40.0)),
        Step(15.0, "restart_controller", (1.0,)),
    ),
    "a worker has not joined when its leaf is held": (
        Step(1.0, "submit", (long_job("a", "h1", "h3"),)),
        Step(1.1, "keep_away", ("a", "h1")),
        Step(10.0, "hold", ("leaf1", 49.0)),
    ),
    "a drained parameter server is a job's": (
        Step(1.0, "submit", (long_job("a", "h1", "h3", scheme="atp"),)),
        Step(10.0, "drain", ("ps1", 49.0)),
    ),
}

DRAIN_FABRICS = {
    "a job over a spine that it cannot leave gets a new epoch": "one spine",
    "the controller starts again over a spine that a job cannot leave": "one spine",
    "a worker comes again to a job over a spine that it cannot leave": "one spine",
    "a spine is given back while a queued job waits for it": "one spine",
    "a link is given back while a worker that joins is planned": "one spine",
    "a drained parameter server is a job's": "two servers",
}
