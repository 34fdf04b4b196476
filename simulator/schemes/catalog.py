# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What each scheme of the literature puts on the links of a fabric for a job, by its name: a ring, or the trees of the
plan that the controller would make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from netfold.controller.planning.network import Limits
from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.simulator.scenario import Free, InNetwork, ScenarioError, Scheme, Settings, Transport
from netfold.simulator.schemes.rings import hierarchical_ring, ring
from netfold.simulator.schemes.straight import straight_plan
from netfold.topologies.fabric import Fabric
from netfold.traffic.congestion import Congestion


class Name(StrEnum):
    RING = "ring"
    HIERARCHICAL_RING = "hierarchical-ring"
    SWITCHML = "switchml"
    SWITCHML_BALANCED = "switchml-lb"
    ATP = "atp"
    PANAMA = "panama"
    GRID = "grid"
    INART = "inart"
    NETREDUCE = "netreduce"
    NETREDUCE_PARALLEL = "netreduce-parallel"
    IDEAL = "ideal"


@dataclass(frozen=True)
class Options:
    """What schemes need beside the workers.

    servers       parameter servers, which atp, grid and inart need
    trees         of panama and switchml-lb
    in_step       of panama and switchml-lb: one window for all trees, see InNetwork
    gpus, intra   of a machine, and what each of them sends to the next one (bytes/s), for netreduce-parallel
    ring_in_step  of ring, see Exchange.in_step
    parallel      of ring, see Exchange.parallel
    planned       jobs with more workers get straight trees (straight.py) instead of a plan
    """

    servers: tuple[str, ...] = ()
    trees: int = 4
    in_step: bool = False
    ring_in_step: bool = True
    parallel: int = 1
    gpus: int = 8
    intra: float = 100e9
    planned: int = 2048
    transport: Transport = Transport.DCTCP
    seed: int = 0


def scheme_of(name: Name, fabric: Fabric, workers: Sequence[str], options: Options | None = None) -> Scheme:
    """`name`'s all-reduce among `workers`. Raises PlanningError when there is no plan."""
    own = options or Options()
    if name is Name.RING:
        plain = ring(in_racks(fabric, workers), own.transport)
        return replace(plain, in_step=own.ring_in_step, parallel=own.parallel)
    if name is Name.HIERARCHICAL_RING:
        return hierarchical_ring(racks_of(fabric, workers), own.transport)
    if name is Name.IDEAL:
        return ideal(fabric, workers)
    plan = _plan(name, fabric, tuple(workers), own)
    return over(name, plan, own)


def over(name: Name, plan: Plan, options: Options | None = None) -> InNetwork:
    """`name`'s way of sending over the trees of a plan that is there already."""
    own = options or Options()
    if name in (Name.SWITCHML, Name.SWITCHML_BALANCED):
        return InNetwork(plan, Congestion.FIXED, in_step=own.in_step)
    if name in (Name.ATP, Name.GRID, Name.INART):
        return InNetwork(plan, Congestion.ATP)
    local = 2 * (own.gpus - 1) / own.gpus / own.intra if name is Name.NETREDUCE_PARALLEL else 0.0
    return InNetwork(plan, Congestion.PANAMA, in_step=own.in_step, local_s=local)


def ideal(fabric: Fabric, workers: Sequence[str]) -> Free:
    """Every worker sends and receives the gradient once, at its link's rate, and nobody is in the way."""
    settings = Settings()
    slowest = min(fabric.link(w, fabric.attachment(w)).rate for w in workers)
    return Free(slowest * fabric.unit.bits_per_second / 8 / settings.wire)


def racks_of(fabric: Fabric, workers: Sequence[str]) -> list[list[str]]:
    """The workers by the switch that they hang on, in the order of `workers`."""
    racks: dict[str, list[str]] = {}
    for worker in workers:
        racks.setdefault(fabric.attachment(worker), []).append(worker)
    return list(racks.values())


def in_racks(fabric: Fabric, workers: Sequence[str]) -> list[str]:
    """The workers, those of a rack next to each other, as collective libraries order their rings."""
    return [worker for rack in racks_of(fabric, workers) for worker in rack]


def _plan(name: Name, fabric: Fabric, workers: tuple[str, ...], own: Options) -> Plan:
    algorithm, options = {
        Name.SWITCHML: ("switchml", {}),
        Name.SWITCHML_BALANCED: ("panama", {"trees": own.trees}),
        Name.PANAMA: ("panama", {"trees": own.trees}),
        Name.ATP: ("atp", {}),
        Name.GRID: ("grid", {}),
        Name.INART: ("inart", {}),
        Name.NETREDUCE: ("panama", {"trees": 1}),
        Name.NETREDUCE_PARALLEL: ("panama", {"trees": 1}),
    }[name]
    if algorithm in ("atp", "grid", "inart") and not own.servers:
        raise ScenarioError(f"{name} adds up at parameter servers: name one that is no worker")
    if algorithm == "panama" and len(workers) > own.planned:
        return straight_plan(fabric, workers, str(name), options["trees"])
    job = JobSpec(str(name), workers, own.servers, scheme=algorithm, options=options)
    return make_plan(fabric, job, seed=own.seed, limits=Limits(fan_in=_widest(fabric)))


def _widest(fabric: Fabric) -> int:
    return max(fabric.graph.degree[s.name] for s in fabric.switches)
