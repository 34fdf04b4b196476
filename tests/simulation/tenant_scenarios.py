# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs of several tenants that wait for the same links, a scenario for each rule of their order."""

from __future__ import annotations

from tests.simulation.program import JobSpec, greedy, job
from tests.simulation.scenario import Step


def full(name: str, tenant: str, work_s: float = 3.0, **changes: object) -> JobSpec:
    """A job that leaves nothing of its links."""
    return greedy(name, "h1", "h3", rate=100, work_s=work_s, tenant=tenant, **changes)


def half(name: str, tenant: str, workers: tuple[str, str], work_s: float, max_s: float = 0.0) -> JobSpec:
    return greedy(name, *workers, rate=60, work_s=work_s, tenant=tenant, max_s=max_s)


TENANT_SCENARIOS = {
    "a tenant that has used nothing waits behind many jobs of another one": (
        Step(1.0, "submit", (full("a1", "ants", 12.0),)),
        Step(3.0, "submit", (full("a2", "ants"),)),
        Step(4.0, "submit", (full("a3", "ants"),)),
        Step(6.0, "submit", (full("b1", "bees"),)),
        Step(7.0, "submit", (full("b2", "bees"),)),
    ),
    "a tenant of twice the weight gets twice as many turns": (
        Step(1.0, "submit", (full("c", "crabs", 15.0),)),
        Step(3.0, "submit", (full("b1", "bees"),)),
        Step(3.5, "submit", (full("b2", "bees"),)),
        Step(4.0, "submit", (full("a1", "ants", weight=3.0),)),
        Step(4.5, "submit", (full("a2", "ants", weight=3.0),)),
        Step(5.0, "submit", (full("a3", "ants", weight=3.0),)),
    ),
    "a tenant's running job counts before it has run for long": (
        Step(1.0, "submit", (full("b0", "bees", 4.0),)),
        Step(16.0, "submit", (full("c", "crabs", 20.0),)),
        Step(22.0, "submit", (half("a1", "ants", ("h2", "h4"), 30.0),)),
        Step(25.0, "submit", (full("a2", "ants"),)),
        Step(26.0, "submit", (full("b1", "bees"),)),
    ),
    "the controller starts again while tenants wait that have used the fabric": (
        Step(1.0, "submit", (full("a1", "ants", 8.0),)),
        Step(16.0, "submit", (full("c", "crabs", 25.0),)),
        Step(20.0, "submit", (full("a2", "ants"),)),
        Step(21.0, "submit", (full("b1", "bees"),)),
        Step(27.0, "restart_controller", (1.0,)),
    ),
    "a tenant's priority comes before its share": (
        Step(1.0, "submit", (full("a1", "ants", 12.0),)),
        Step(3.0, "submit", (full("b1", "bees"),)),
        Step(4.0, "submit", (full("a2", "ants", priority=3),)),
    ),
    "jobs of two tenants wait for so long that age would order them": (
        Step(1.0, "submit", (full("a1", "ants", 40.0),)),
        Step(3.0, "submit", (full("a2", "ants"),)),
        Step(27.0, "submit", (full("b1", "bees"),)),
    ),
    "a fresh job's turn is before that of one that waits for long, and both are less urgent than another": (
        Step(1.0, "submit", (full("a1", "ants", 70.0),)),
        Step(2.0, "submit", (half("c0", "crabs", ("h2", "h4"), 3.0),)),
        Step(3.0, "submit", (full("a2", "ants"),)),
        Step(50.0, "submit", (full("c1", "crabs", priority=1),)),
        Step(52.0, "submit", (full("b1", "bees"),)),
    ),
    "a job is still at work when its time is over": (
        Step(1.0, "submit", (full("a", "ants", 60.0, max_s=10.0),)),
        Step(3.0, "submit", (full("b", "bees"),)),
    ),
    "the controller starts again when the time of a job is nearly over": (
        Step(1.0, "submit", (full("a", "ants", 60.0, max_s=10.0),)),
        Step(9.0, "restart_controller", (1.0,)),
    ),
    "a short job ends before a reservation can start": (
        Step(1.0, "submit", (half("a", "ants", ("h1", "h3"), 60.0, 50.0),)),
        Step(4.0, "submit", (full("b", "bees"),)),
        Step(6.0, "submit", (job("c", "h1", "h3", rate=30, work_s=4.0, tenant="crabs", max_s=8.0),)),
    ),
    "a job would end after a reservation can start": (
        Step(1.0, "submit", (half("a", "ants", ("h1", "h3"), 60.0, 20.0),)),
        Step(4.0, "submit", (full("b", "bees"),)),
        Step(12.0, "submit", (job("c", "h1", "h3", rate=30, work_s=30.0, tenant="crabs", max_s=35.0),)),
    ),
}
