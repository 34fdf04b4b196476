# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The way in: `make_plan` plans a job by the scheme it names and lets nothing out that the validator
refuses."""

from __future__ import annotations

from controller.planning.atp import plan_atp
from controller.planning.auto import plan_auto
from controller.planning.grid import plan_grid
from controller.planning.inart import plan_inart
from controller.planning.lbmm import plan_lbmm
from controller.planning.network import NOTHING, Limits, Network, check_job
from controller.planning.none import plan_none
from controller.planning.optimal import plan_optimal
from controller.planning.panama import plan_panama
from controller.planning.plan import JobSpec, Loads, Plan, PlanningError
from controller.planning.scheme import OPTIONS, Scheme, Task
from controller.planning.switchml import plan_switchml
from controller.planning.validate import validate
from topologies.fabric import Fabric

SCHEMES: dict[str, Scheme] = {
    "none": plan_none,
    "lbmm": plan_lbmm,
    "atp": plan_atp,
    "switchml": plan_switchml,
    "grid": plan_grid,
    "inart": plan_inart,
    "panama": plan_panama,
    "optimal": plan_optimal,
    "auto": plan_auto,
}


def make_plan(
    fabric: Fabric,
    job: JobSpec,
    *,
    background: Loads = NOTHING,
    seed: int = 0,
    limits: Limits | None = None,
) -> Plan:
    """A valid plan for `job` by `job.scheme`, on what `background` (the loads of earlier jobs) leaves of the
    fabric.

    Raises PlanningError when there is none; the message names what is missing. InvalidPlan is a defect of
    a scheme.
    """
    scheme = SCHEMES.get(job.scheme)
    if scheme is None:
        raise PlanningError(
            f"job '{job.name}': scheme '{job.scheme}' is unknown; there are {', '.join(SCHEMES)}"
        )
    check_job(fabric, job)
    for option in job.options:
        if option not in OPTIONS:
            raise PlanningError(
                f"job '{job.name}': option '{option}' is unknown; there are {', '.join(OPTIONS)}"
            )
    plan = scheme(Task(Network(fabric, background, limits), job, seed))
    validate(fabric, job, plan, background, fan_in=(limits or Limits()).fan_in)
    return plan
