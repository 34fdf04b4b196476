# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""May a job run, and where? A plan at an acceptable rate on what earlier jobs leave; its numbers are given by
numbering.py. A refusal names the resource that binds and what would fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from netfold.controller.jobs.file import Reroute, ResolvedJob
from netfold.controller.jobs.records import JobRecord, Transport, links_of
from netfold.controller.jobs.rings import lonely
from netfold.controller.planning.pipes import loopback_rate
from netfold.controller.planning.plan import InvalidPlanError, JobSpec, Loads, Plan, PlanningError, Tree
from netfold.controller.planning.planner import SchemeComparison, full_nodes, make_plan
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.validate import add_loads, check_capacities
from netfold.controller.switches.failed_elements import FailedElements
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, FRAMING_BYTES, packet_bytes
from netfold.topologies.distances import distances
from netfold.topologies.fabric import Fabric, FabricError, Link

ACCEPTABLE = 0.05
"""Of the slowest worker's link: the least rate of a job that names none."""

NEARLY = 0.99
"""Another split has to be better than the same one by a hundredth."""


class RefusedError(Exception):
    """The job does not fit now; the message says why and what would."""


class PlanTimeoutError(RefusedError):
    """No plan was found in time: there may be one."""


class ImpossibleJobError(RefusedError):
    """The job would not fit if the whole fabric worked and were its own: waiting is of no use."""


@dataclass(frozen=True)
class PacketModel:
    """How a plan's rates become packets. `scale` is what one bit/s of the fabric is on the wire,
    `host_rtt_s` what hosts and switches add to a round trip beyond the links' delays."""

    lanes: int
    scale: float = 1.0
    host_rtt_s: float = 0.002

    @property
    def frame_bits(self) -> int:
        """Of a packet, as ports count them."""
        return 8 * (FRAME_OVERHEAD_BYTES + packet_bytes(self.lanes))

    @property
    def packet_bits(self) -> int:
        """What an Ethernet link is busy with for it."""
        return self.frame_bits + 8 * FRAMING_BYTES

    def bits_per_second(self, fabric: Fabric, rate: float) -> float:
        return rate * fabric.unit.bits_per_second * self.scale


WHOLE = FailedElements()

MAX_CAUSES = 3
"""Switches that a refusal names with the cause of their failure; of the others it has the names."""


@dataclass(frozen=True)
class PlanRequest:
    """A job to plan: on what `background` leaves, around what is broken, without the members that are lost, within
    `deadline_s`.

    foreign  what others send. A plan leaves it room; but a job that would have no place gets one that does not
    held     of a job that moves to gain something: its trees. The plan leaves foreign loads their room, and is the
             better one of those with the same split and with another
    enough   a rate with which it would be content: no further plan is made
    """

    order: ResolvedJob
    background: Loads = NO_LOADS
    foreign: Loads = NO_LOADS
    held: tuple[Tree, ...] = ()
    enough: float = math.inf
    broken: FailedElements = WHOLE
    without: frozenset[str] = frozenset()
    deadline_s: float = 60.0
    time_limit_s: float = math.inf
    """Of a solver that improves its plan for as long as it may."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """Address and last error of switches that are broken, for a refusal."""


def plan_order(fabric: Fabric, request: PlanRequest) -> Plan:
    """A plan on what the background leaves, at most at the rate that the job asks for. Raises RefusedError."""
    if not request.foreign.links:
        return _plan_order(fabric, request)
    beside = replace(request, background=add_loads(request.background, request.foreign))
    try:
        plan = _plan_order(fabric, beside)
    except RefusedError:
        if request.held:
            raise
        return _plan_order(fabric, request)
    return replace(
        plan, assumed_cross_traffic=request.foreign, pacing_rate=_pacing_rate(fabric, request, plan)
    )


def _pacing_rate(fabric: Fabric, request: PlanRequest, plan: Plan) -> float:
    """The rate of the plan's trees beside other jobs alone. What is foreign now may be gone in a second, and while it
    is there a worker's window shares with it as a TCP flow does."""
    rooms = (
        (fabric.link(*link).rate - request.background.links.get(link, 0.0)) / load
        for link, load in plan.loads.links.items()
        if load > 0
    )
    more = max(1.0, min(rooms, default=1.0))
    if not fits(fabric, plan.times(more), request.background):
        return plan.rate
    most = request.order.file.rate
    return plan.rate * more if most is None else min(plan.rate * more, most)


def _plan_order(fabric: Fabric, request: PlanRequest) -> Plan:
    order, background, broken = request.order, request.background, request.broken
    spec = _hastened(order.spec(request.without), request.time_limit_s)
    if not spec.workers:
        raise RefusedError(f"job '{spec.name}' has no worker left")
    if order.file.transport is Transport.ROCE and (alone := lonely(fabric, spec.workers)):
        raise RefusedError(f"job '{spec.name}': {alone}")
    try:
        working = without_broken(fabric, broken, (*spec.workers, *spec.parameter_servers), request.causes)
        plan = _best_plan(working, spec, request)
    except (PlanningError, FabricError) as error:
        raise RefusedError(str(error)) from error
    least = acceptable_rate(fabric, order, spec.workers)
    if plan.rate < least * (1 - 1e-9):
        raise RefusedError(
            f"job '{spec.name}' would get {plan.rate:g} {plan.unit}, below its least rate {least:g}; "
            f"{bottleneck(fabric, plan, background)}; a min_rate of at most {plan.rate:.4g} would fit"
        )
    return plan if order.file.rate is None else cap_rate(plan, order.file.rate)


def _best_plan(working: Fabric, spec: JobSpec, request: PlanRequest) -> Plan:
    """Of a job that moves the best one, and of (nearly) equal ones that with the same split. Raises PlanningError."""
    file = request.order.file
    if not request.held:
        return make_plan(working, spec, background=request.background, seed=file.seed)
    makers = SchemeComparison(working, spec, background=request.background, seed=file.seed)
    same, other = None, None
    try:
        same = makers.plan_fixed_split(request.held)
    except PlanningError:
        if file.reroute is Reroute.FIXED_SPLIT:
            raise
    if same is not None and (file.reroute is Reroute.FIXED_SPLIT or same.rate >= NEARLY * request.enough):
        return same
    try:
        other = makers.plan(spec.scheme, spec.options)
    except PlanningError:
        if same is None:
            raise
    if same is None or (other is not None and other.rate * NEARLY > same.rate):
        assert other is not None
        return other
    return same


def _hastened(spec: JobSpec, seconds: float) -> JobSpec:
    """The same job with a time limit of at most so much, if its scheme has one."""
    if spec.scheme != "optimal" or math.isinf(seconds):
        return spec
    own = spec.options.get("time_limit", seconds)
    limit = min(float(own), seconds) if isinstance(own, int | float) else seconds
    return replace(spec, options={**spec.options, "time_limit": limit})


def background_of(jobs: Iterable[JobRecord]) -> Loads:
    loads = NO_LOADS
    for job in jobs:
        if job.state.is_installed and job.placement is not None:
            loads = add_loads(loads, job.placement.plan.loads)
    return loads


def acceptable_rate(fabric: Fabric, order: ResolvedJob, workers: Iterable[str]) -> float:
    if order.file.min_rate is not None:
        return order.file.min_rate
    slowest = min(fabric.link(w, fabric.attachment(w)).rate for w in workers)
    return ACCEPTABLE * slowest if order.file.rate is None else min(ACCEPTABLE * slowest, order.file.rate)


def cap_rate(plan: Plan, rate: float) -> Plan:
    """The same trees at no more than `rate`."""
    if plan.rate <= rate:
        return plan
    return replace(plan, rate=rate, loads=plan.loads.times(rate / plan.rate))


def bottleneck(fabric: Fabric, plan: Plan, background: Loads) -> str:
    """The fullest resource of a plan, in words."""
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


def uses_failed(plan: Plan, broken: FailedElements, lost: Iterable[str]) -> bool:
    """The plan uses what is broken, or members that are lost."""
    links = links_of(plan)
    nodes = {n for link in links for n in link}
    return bool(nodes & broken.switches or links & broken.links or nodes & set(lost))


def fits(fabric: Fabric, plan: Plan, background: Loads) -> bool:
    """The plan's loads fit beside the background."""
    try:
        check_capacities(fabric, plan.job, plan.loads, background)
    except InvalidPlanError:
        return False
    return True


def without_broken(
    fabric: Fabric, broken: FailedElements, members: Iterable[str], causes: Mapping[str, str]
) -> Fabric:
    """The part of the fabric that works and holds all members. Raises RefusedError if they are cut apart."""
    if not broken.links and not broken.switches:
        return fabric
    wanted = tuple(members)
    working = {a: [b for b in links if not broken.covers(a, b)] for a, links in fabric.neighbors.items()}
    part = distances(working, wanted[0])
    for member in wanted:
        if member not in part:
            down = _switches_down(broken, causes) + sorted("-".join(sorted(k)) for k in broken.links)
            raise RefusedError(f"no working way leads from {wanted[0]} to {member}; down: {', '.join(down)}")

    def works(link: Link) -> bool:
        return link.a in part and link.b in part and not broken.covers(link.a, link.b)

    return fabric.part(
        (s for s in fabric.switches if s.name in part),
        (h for h in fabric.hosts if h.name in part),
        (k for k in fabric.links if works(k)),
    )


def _switches_down(broken: FailedElements, causes: Mapping[str, str]) -> list[str]:
    names = sorted(broken.switches)
    explained = [f"{name} ({causes[name]})" if name in causes else name for name in names[:MAX_CAUSES]]
    return explained + names[MAX_CAUSES:]
