# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans one job at an acceptable rate on the capacity that other jobs leave, or refuses it with the resource that binds
and a rate that would fit. lifecycle/allocation.py gives the plan its numbers, or refuses it where there are none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from netfold.controller.features.registry import features_in
from netfold.controller.jobs.file import Reroute, ResolvedJob
from netfold.controller.lifecycle.capacity import RefusedError, fits
from netfold.controller.planning.pipes import loopback_rate
from netfold.controller.planning.plan import JobSpec, Loads, Plan, PlanningError, Tree
from netfold.controller.planning.planner import SchemeComparison, full_nodes, make_plan
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.validate import add_loads
from netfold.controller.switches.failed_elements import FailedElements
from netfold.protocol.listing import listing
from netfold.topologies.distances import distances
from netfold.topologies.fabric import Fabric, FabricError, Link

MIN_RATE_FRACTION = 0.05
"""Default minimum rate, as a fraction of the slowest worker's link."""

NEAR_TIE = 0.99
"""Ratio of two rates from which they are nearly equal: a job that moves then keeps its split."""

NO_FAILURES = FailedElements()

MAX_CAUSES = 3
"""Number of elements that a refusal names with the cause why they are avoided; it lists others by name alone."""

MAX_NAMED = 16
"""Number of elements that a refusal names: thousands of links may be withdrawn."""


@dataclass(frozen=True)
class PlanRequest:
    """A job to plan on the capacity that `background` leaves, around the `failed` elements, without the
    `excluded_members`, within `deadline_s`.

    cross_traffic    traffic of others. The plan avoids it, unless the job would otherwise not fit
    current_trees    the trees of a job that moves to gain something. Its plan leaves cross traffic its capacity, and is
                     the better one of a plan with the same split and one with another
    sufficient_rate  stop searching once a plan has this rate
    """

    resolved_job: ResolvedJob
    background: Loads = NO_LOADS
    cross_traffic: Loads = NO_LOADS
    current_trees: tuple[Tree, ...] = ()
    sufficient_rate: float = math.inf
    failed: FailedElements = NO_FAILURES
    excluded_members: frozenset[str] = frozenset()
    deadline_s: float = 60.0
    time_limit_s: float = math.inf
    """Time limit of a solver that improves its plan for as long as it may."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """For a refusal: address and last error of failed switches; which elements are withdrawn."""


def plan_job(fabric: Fabric, request: PlanRequest) -> Plan:
    """A plan on the capacity that the background leaves, at most at the rate that the job's file has. Raises
    RefusedError."""
    if not request.cross_traffic.links:
        return _plan_job(fabric, request)
    with_cross_traffic = replace(request, background=add_loads(request.background, request.cross_traffic))
    try:
        plan = _plan_job(fabric, with_cross_traffic)
    except RefusedError:
        if request.current_trees:
            raise
        return _plan_job(fabric, request)
    return replace(
        plan, assumed_cross_traffic=request.cross_traffic, pacing_rate=_pacing_rate(fabric, request, plan)
    )


def _pacing_rate(fabric: Fabric, request: PlanRequest, plan: Plan) -> float:
    """The rate of the plan if only other jobs used the links. Cross traffic may end within a second, and until then the
    window of a worker shares the link with it as a TCP flow does."""
    rooms = (
        (fabric.link(*link).rate - request.background.links.get(link, 0.0)) / load
        for link, load in plan.loads.links.items()
        if load > 0
    )
    more = max(1.0, min(rooms, default=1.0))
    if not fits(fabric, plan.times(more), request.background):
        return plan.rate
    most = request.resolved_job.file.rate
    return plan.rate * more if most is None else min(plan.rate * more, most)


def _plan_job(fabric: Fabric, request: PlanRequest) -> Plan:
    resolved, background, failed = request.resolved_job, request.background, request.failed
    spec = _with_time_limit(resolved.spec(request.excluded_members), request.time_limit_s)
    if not spec.workers:
        raise RefusedError(f"job '{spec.name}' has no worker left")
    for feature in features_in(resolved.file):
        if problem := feature.workers_problem(fabric, spec.workers):
            raise RefusedError(f"job '{spec.name}': {problem}")
    try:
        working = without_failed(fabric, failed, (*spec.workers, *spec.parameter_servers), request.causes)
        plan = _best_plan(working, spec, request)
    except (PlanningError, FabricError) as error:
        raise RefusedError(str(error)) from error
    least = acceptable_rate(fabric, resolved, spec.workers)
    if plan.rate < least * (1 - 1e-9):
        raise RefusedError(
            f"job '{spec.name}' would get {plan.rate:g} {plan.unit}, below its least rate {least:g}; "
            f"{bottleneck(fabric, plan, background)}; a min_rate of at most {plan.rate:.4g} would fit"
        )
    return plan if resolved.file.rate is None else cap_rate(plan, resolved.file.rate)


def _best_plan(working: Fabric, spec: JobSpec, request: PlanRequest) -> Plan:
    """For a job that moves: the best plan; on a near tie, the one that keeps its split. Raises PlanningError."""
    file = request.resolved_job.file
    if not request.current_trees:
        return make_plan(working, spec, background=request.background, seed=file.seed)
    makers = SchemeComparison(working, spec, background=request.background, seed=file.seed)
    same, other = None, None
    try:
        same = makers.plan_fixed_split(request.current_trees)
    except PlanningError:
        if file.reroute is Reroute.FIXED_SPLIT:
            raise
    if same is not None and (
        file.reroute is Reroute.FIXED_SPLIT or same.rate >= NEAR_TIE * request.sufficient_rate
    ):
        return same
    try:
        other = makers.plan(spec.scheme, spec.options)
    except PlanningError:
        if same is None:
            raise
    if same is None or (other is not None and other.rate * NEAR_TIE > same.rate):
        assert other is not None
        return other
    return same


def _with_time_limit(spec: JobSpec, seconds: float) -> JobSpec:
    """The same job with a time limit of at most `seconds`, if its scheme has one."""
    if spec.scheme != "optimal" or math.isinf(seconds):
        return spec
    own = spec.options.get("time_limit", seconds)
    limit = min(float(own), seconds) if isinstance(own, int | float) else seconds
    return replace(spec, options={**spec.options, "time_limit": limit})


def acceptable_rate(fabric: Fabric, resolved: ResolvedJob, workers: Iterable[str]) -> float:
    if resolved.file.min_rate is not None:
        return resolved.file.min_rate
    least = MIN_RATE_FRACTION * min(fabric.link(w, fabric.attachment(w)).rate for w in workers)
    return least if resolved.file.rate is None else min(least, resolved.file.rate)


def cap_rate(plan: Plan, rate: float) -> Plan:
    """The same plan with a rate of at most `rate`."""
    if plan.rate <= rate:
        return plan
    return replace(plan, rate=rate, loads=plan.loads.times(rate / plan.rate))


def bottleneck(fabric: Fabric, plan: Plan, background: Loads) -> str:
    """A sentence about the resource that the plan and the background fill most."""
    rows: list[tuple[float, str, float, float]] = []
    for (a, b), load in plan.loads.links.items():
        used, capacity = background.links.get((a, b), 0.0), fabric.link(a, b).rate
        rows.append(((used + load) / capacity, f"link {a}->{b}", used, capacity))
    for name, load in plan.loads.switches.items():
        used, capacity = background.switches.get(name, 0.0), fabric.switch(name).capacity
        rows.append(((used + load) / capacity, f"aggregation in switch {name}", used, capacity))
    for name, load in plan.loads.servers.items():
        used, capacity = background.servers.get(name, 0.0), fabric.ingress_capacity(name)
        rows.append(((used + load) / capacity, f"parameter server {name}", used, capacity))
    for (name, port), load in plan.loads.loopbacks.items():
        used, capacity = background.loopbacks.get((name, port), 0.0), loopback_rate(fabric, name, port)
        rows.append(((used + load) / capacity, f"loopback port {port} of switch {name}", used, capacity))
    _, what, used, capacity = max(rows)
    limit = full_nodes(fabric, plan)
    return f"{what} binds: other jobs use {used:g} of {capacity:g}{f'; {limit}' if limit else ''}"


def without_failed(
    fabric: Fabric, failed: FailedElements, members: Iterable[str], causes: Mapping[str, str]
) -> Fabric:
    """The part of the fabric that works and holds all members. Raises RefusedError if no path connects them."""
    if not failed.links and not failed.switches:
        return fabric
    wanted = tuple(members)
    working = {a: [b for b in links if not failed.covers(a, b)] for a, links in fabric.neighbors.items()}
    part = distances(working, wanted[0])
    for member in wanted:
        if member not in part:
            raise RefusedError(
                f"no path without failed or withdrawn elements from {wanted[0]} to {member}: "
                f"{_explained(failed, causes)}"
            )

    def works(link: Link) -> bool:
        return link.a in part and link.b in part and not failed.covers(link.a, link.b)

    return fabric.part(
        (s for s in fabric.switches if s.name in part),
        (h for h in fabric.hosts if h.name in part),
        (k for k in fabric.links if works(k)),
    )


def _explained(failed: FailedElements, causes: Mapping[str, str]) -> str:
    """The names of the elements, switches first; of some with the cause."""
    names = [*sorted(failed.switches), *FailedElements(failed.links).names]
    explained = [f"{name} ({causes[name]})" if name in causes else name for name in names[:MAX_CAUSES]]
    return listing([*explained, *names[MAX_CAUSES:]], MAX_NAMED)
