# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Search for a plan that the controller could have made for a job."""

from __future__ import annotations

import asyncio

from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.capacity import RefusedError, background_of
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.scheduling.job_planner import PlanRequest
from netfold.controller.switches.failed_elements import FailedElements
from tests.simulation.world import World

RECENT_S = 30.0
"""A link or switch that failed within this time before a job did excuses it."""


def possible_plan(world: World, job: JobRecord, unreachable: frozenset[str] = frozenset()) -> str:
    """Why a job could go on: nothing failed lately, or there is a plan around all that did. Empty: it could not. What
    hangs or is slow has not failed, as no job ends for time alone. But a job cannot move over it: a caller that asks
    for a move names such switches as `unreachable`."""
    assert world.controller is not None
    now = asyncio.get_running_loop().time()
    recent = {e for e, at in world.changed_at.items() if now - at < RECENT_S}
    down = {n for n, s in world.switches.items() if not s.is_up or s.rogues}
    down |= {n for n, s in world.switches.items() if now - s.refused_at < RECENT_S and n in job.reason}
    links = frozenset(e for e in recent if isinstance(e, frozenset)) | frozenset(world.cut)
    switches = frozenset(e for e in recent if isinstance(e, str)) | frozenset(down) | unreachable
    if not links and not switches and not job.excluded:
        return "nothing happened to it"
    others = background_of(j for j in world.controller.state.registry.all() if j.name != job.name)
    return "there is a plan" if fits(world, job, FailedElements(links, switches), others) else ""


def fits(world: World, job: JobRecord, failed: FailedElements, others: Loads) -> bool:
    """There is a plan around what failed, beside the loads of others."""
    return plan_of(world, job, failed, others) is not None


def plan_of(world: World, job: JobRecord, failed: FailedElements, others: Loads) -> Plan | None:
    """The plan around what failed, beside the loads of others; None: there is none."""
    assert world.controller is not None
    resolved = world.controller.state.registry.resolved_job(job.name)
    without = frozenset(job.excluded) | failed.switches.intersection(resolved.parameter_servers)
    try:
        return world.plans.compute(PlanRequest(resolved, others, failed=failed, excluded_members=without))
    except RefusedError:
        return None
