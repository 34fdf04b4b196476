# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans a job by the scheme that it names, and returns only plans that the validator accepts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from netfold.controller.planning.candidate_paths import Limits
from netfold.controller.planning.fixed_split import plan_fixed_split
from netfold.controller.planning.hierarchy import Hierarchy
from netfold.controller.planning.plan import JobSpec, Loads, Plan, PlanningError, Tree
from netfold.controller.planning.residual_network import (
    NO_LOADS,
    ResidualNetwork,
    check_job,
    natural_unit,
)
from netfold.controller.planning.scheme import OPTIONS, Scheme, Task
from netfold.controller.planning.scheme_registry import INSTALLED_SCHEMES, SCHEMES
from netfold.controller.planning.validate import validate
from netfold.topologies.children import child_limit
from netfold.topologies.fabric import Fabric

BITS, BYTES = 8, 4
"""Bits of a byte, and bytes of an element."""


def make_plan(
    fabric: Fabric,
    job: JobSpec,
    *,
    background: Loads = NO_LOADS,
    seed: int = 0,
    limits: Limits | None = None,
) -> Plan:
    """A valid plan for `job` by `job.scheme`, on the capacity of the fabric that `background`, the loads of earlier
    jobs, leaves.

    Raises PlanningError if there is none; the message names the bottleneck. InvalidPlanError is a defect of a scheme.
    """
    return SchemeComparison(fabric, job, background=background, seed=seed, limits=limits).plan(
        job.scheme, job.options
    )


def full_nodes(fabric: Fabric, plan: Plan) -> str:
    """A sentence if nodes of the plan have as many children as their switches take, which may hold it down: for the
    fullest one, and what lifts the limit. Else empty."""
    full = {
        node: children
        for tree in plan.trees
        for node in tree.nodes
        if not fabric.is_host(node)
        and (children := len(tree.children(node))) >= fabric.switch(node).max_children
    }
    return child_limit(fabric.switch(max(full, key=lambda node: full[node]))) if full else ""


class SchemeComparison:
    """Plans of one job by several schemes. They share candidate routes, solved relaxations and roundings. Each plan is
    the same as the scheme makes alone, but with a shorter `solve_s`."""

    def __init__(
        self,
        fabric: Fabric,
        job: JobSpec,
        *,
        background: Loads = NO_LOADS,
        seed: int = 0,
        limits: Limits | None = None,
    ) -> None:
        check_job(fabric, job)
        self._fan_in = None if limits is None else limits.fan_in
        self._background = background
        unit = natural_unit(fabric, background, job.workers)
        self.task = Task(ResidualNetwork(fabric, background, limits, unit), job, seed)

    def plan(self, scheme: str, options: Mapping[str, str | float | int | bool]) -> Plan:
        """Plan by a scheme, as `make_plan` does."""
        job = self.task.job
        known = SCHEMES.get(scheme)
        if known is None:
            raise PlanningError(
                f"job '{job.name}': scheme '{scheme}' is unknown; there are {', '.join(SCHEMES)}"
            )
        for option in options:
            if option not in OPTIONS and scheme not in INSTALLED_SCHEMES:
                raise PlanningError(
                    f"job '{job.name}': option '{option}' is unknown; there are {', '.join(OPTIONS)}"
                )
        return self._planned(known, replace(job, scheme=scheme, options=options))

    def plan_fixed_split(self, trees: Sequence[Tree]) -> Plan:
        """Plan as `make_plan` does, at the shares of `trees`, and with their roots if these are parameter servers."""
        return self._planned(lambda task: plan_fixed_split(task, trees), self.task.job)

    def _planned(self, scheme: Scheme, job: JobSpec) -> Plan:
        fabric = self.task.network.fabric
        plan = scheme(replace(self.task, job=job, began=time.perf_counter())).times(self.task.network.unit)
        validate(fabric, job, plan, self._background, fan_in=self._fan_in)
        return replace(plan, hierarchy=_hierarchy(fabric, job))


def _hierarchy(fabric: Fabric, job: JobSpec) -> Hierarchy | None:
    """The hierarchy of the job; None if each host is one rank, or one host is the whole job."""
    if job.ranks.per_host == 1 or len(job.workers) == 1:
        return None
    unit = fabric.unit.bits_per_second / BITS
    link = min(fabric.link(w, fabric.attachment(w)).rate for w in job.workers)
    return Hierarchy(job.ranks, len(job.workers), job.elements * BYTES, link * unit, unit)
