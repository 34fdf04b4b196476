# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of each scheme of the literature on the links of a fabric, by its name: a ring, binary trees of
hosts, or the trees of the plan that the controller would make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from netfold.controller.planning.candidate_paths import Limits
from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.simulator.scenario import (
    IdealCollective,
    InNetworkCollective,
    NetworkSettings,
    ScenarioError,
    Scheme,
    TcpVariant,
)
from netfold.simulator.schemes.binary_trees import double_binary_tree
from netfold.simulator.schemes.rings import hierarchical_ring, ring
from netfold.simulator.schemes.straight import straight_plan
from netfold.topologies.fabric import Fabric
from netfold.traffic.congestion import Congestion


class SchemeName(StrEnum):
    RING = "ring"
    HIERARCHICAL_RING = "hierarchical-ring"
    DOUBLE_BINARY_TREE = "double-binary-tree"
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
class SchemeOptions:
    """Options of schemes, in addition to the workers.

    servers       parameter servers, which atp, grid and inart need
    trees         of panama and switchml-lb
    lockstep      of panama and switchml-lb: one window for all trees, see InNetworkCollective
    gpus, intra   of a machine, and what each of them sends to the next one (bytes/s), for netreduce-parallel
    ring_lockstep of ring, see HostCollective.lockstep
    parallel      of ring, see HostCollective.parallel
    planned       jobs with more workers get straight trees (straight.py) instead of a plan
    max_children  children of a node; None: what its switch takes. More than that cannot be installed
    """

    servers: tuple[str, ...] = ()
    trees: int = 4
    lockstep: bool = False
    ring_lockstep: bool = True
    parallel: int = 1
    gpus: int = 8
    intra: float = 100e9
    planned: int = 2048
    max_children: int | None = None
    transport: TcpVariant = TcpVariant.DCTCP
    seed: int = 0


def scheme_of(
    name: SchemeName, fabric: Fabric, workers: Sequence[str], options: SchemeOptions | None = None
) -> Scheme:
    """`name`'s all-reduce among `workers`. Raises PlanningError when there is no plan."""
    own = options or SchemeOptions()
    if name is SchemeName.RING:
        plain = ring(in_racks(fabric, workers), own.transport)
        return replace(plain, lockstep=own.ring_lockstep, parallel=own.parallel)
    if name is SchemeName.HIERARCHICAL_RING:
        return hierarchical_ring(racks_of(fabric, workers), own.transport)
    if name is SchemeName.DOUBLE_BINARY_TREE:
        return double_binary_tree(in_racks(fabric, workers), own.transport)
    if name is SchemeName.IDEAL:
        return ideal(fabric, workers)
    plan = _plan(name, fabric, tuple(workers), own)
    return over(name, plan, own)


def over(name: SchemeName, plan: Plan, options: SchemeOptions | None = None) -> InNetworkCollective:
    """`name`'s way of sending over the trees of a plan that is there already."""
    own = options or SchemeOptions()
    if name in (SchemeName.SWITCHML, SchemeName.SWITCHML_BALANCED):
        return InNetworkCollective(plan, Congestion.FIXED, lockstep=own.lockstep)
    if name in (SchemeName.ATP, SchemeName.GRID, SchemeName.INART):
        return InNetworkCollective(plan, Congestion.ATP)
    local = 2 * (own.gpus - 1) / own.gpus / own.intra if name is SchemeName.NETREDUCE_PARALLEL else 0.0
    return InNetworkCollective(plan, Congestion.PANAMA, lockstep=own.lockstep, local_s=local)


def ideal(fabric: Fabric, workers: Sequence[str]) -> IdealCollective:
    """Every worker sends and receives the gradient once, at its link's rate, without other traffic."""
    settings = NetworkSettings()
    slowest = min(fabric.link(w, fabric.attachment(w)).rate for w in workers)
    return IdealCollective(slowest * fabric.unit.bits_per_second / 8 / settings.wire)


def racks_of(fabric: Fabric, workers: Sequence[str]) -> list[list[str]]:
    """The workers by the switch that they hang on, in the order of `workers`."""
    racks: dict[str, list[str]] = {}
    for worker in workers:
        racks.setdefault(fabric.attachment(worker), []).append(worker)
    return list(racks.values())


def in_racks(fabric: Fabric, workers: Sequence[str]) -> list[str]:
    """The workers, those of a rack next to each other, as collective libraries order their rings."""
    return [worker for rack in racks_of(fabric, workers) for worker in rack]


def _plan(name: SchemeName, fabric: Fabric, workers: tuple[str, ...], own: SchemeOptions) -> Plan:
    algorithm, options = {
        SchemeName.SWITCHML: ("switchml", {}),
        SchemeName.SWITCHML_BALANCED: ("panama", {"trees": own.trees}),
        SchemeName.PANAMA: ("panama", {"trees": own.trees}),
        SchemeName.ATP: ("atp", {}),
        SchemeName.GRID: ("grid", {}),
        SchemeName.INART: ("inart", {}),
        SchemeName.NETREDUCE: ("panama", {"trees": 1}),
        SchemeName.NETREDUCE_PARALLEL: ("panama", {"trees": 1}),
    }[name]
    if algorithm in ("atp", "grid", "inart") and not own.servers:
        raise ScenarioError(f"{name} adds up at parameter servers: name one that is no worker")
    if algorithm == "panama" and len(workers) > own.planned:
        straight = straight_plan(fabric, workers, str(name), options["trees"])
        _check_children(fabric, straight, own.max_children)
        return straight
    job = JobSpec(str(name), workers, own.servers, scheme=algorithm, options=options)
    return make_plan(fabric, job, seed=own.seed, limits=Limits(fan_in=own.max_children))


def _check_children(fabric: Fabric, plan: Plan, max_children: int | None) -> None:
    """Raises ScenarioError."""
    for tree in plan.trees:
        for node, count in Counter(edge.parent for edge in tree.edges).items():
            most = max_children or fabric.switch(node).max_children
            if count > most:
                raise ScenarioError(
                    f"{plan.job}: switch {node} would have {count} children and takes {most}; fewer workers, or the "
                    "scheme packing, would fit"
                )
