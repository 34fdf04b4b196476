# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Validates plans independently of the planners: recomputes the loads of a plan from the trees alone, and checks the
shape of every tree and every capacity in addition to earlier jobs."""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import pairwise
from typing import TypeVar

from netfold.controller.planning.pipes import check_pipes, loopback_loads, loopback_rate
from netfold.controller.planning.plan import Edge, InvalidPlanError, JobSpec, Loads, Plan, Tree
from netfold.controller.planning.resend_paths import unreached_by_resend
from netfold.topologies.distances import bfs_edges
from netfold.topologies.fabric import Fabric

TOLERANCE = 1e-6

Key = TypeVar("Key", bound=Hashable)


def validate(
    fabric: Fabric,
    job: JobSpec,
    plan: Plan,
    background: Loads | None = None,
    *,
    fan_in: int | None = None,
) -> None:
    """Raise InvalidPlanError, naming tree and element, unless the plan is one that may be installed.

    Every tree: one edge per worker and inner node; simple paths over links of the fabric that pass through
    switches only; nodes that are switches with capacity and no more children than its program takes (or
    `fan_in`); parents that lead
    to the root; children that enter their node's pipe or can be looped into it; result links that are a tree
    from the root to every worker, and with a switch as root one that resent results join (resend_paths.py). The plan:
    shares that sum to 1, a rate above 0, loads as stated, no link direction, switch, server or loopback port above its
    capacity together with `background`."""
    if not math.isfinite(plan.rate) or plan.rate <= 0:
        raise InvalidPlanError(f"plan of job '{job.name}': rate {plan.rate} is not above 0")
    if not plan.trees:
        raise InvalidPlanError(f"plan of job '{job.name}': it has no tree")
    total = sum(t.share for t in plan.trees)
    if abs(total - 1.0) > TOLERANCE or any(not t.share > 0 for t in plan.trees):
        raise InvalidPlanError(
            f"plan of job '{job.name}': shares {[t.share for t in plan.trees]} do not sum to 1"
        )
    for number, tree in enumerate(plan.trees):
        _check_tree(fabric, job, tree, fan_in, f"plan of job '{job.name}', tree {number} (root {tree.root})")
    loads = recompute_loads(fabric, plan.trees, plan.rate)
    _check_stated(job, loads, plan.loads)
    check_capacities(fabric, job.name, loads, Loads() if background is None else background)


def recompute_loads(fabric: Fabric, trees: Iterable[Tree], rate: float) -> Loads:
    """The loads of trees at a rate on directed links, switches, parameter servers and loopback ports (fabric units)."""
    trees = tuple(trees)
    links: dict[tuple[str, str], float] = defaultdict(float)
    switches: dict[str, float] = defaultdict(float)
    servers: dict[str, float] = defaultdict(float)
    for tree in trees:
        stream = tree.share * rate
        for edge in tree.edges:
            for hop in pairwise(edge.path):
                links[hop] += stream
            (servers if fabric.is_host(edge.parent) else switches)[edge.parent] += stream
        for hop in tree.result_links:
            links[hop] += stream
    return Loads(dict(links), dict(switches), dict(servers), loopback_loads(fabric, trees, rate))


def add_loads(first: Loads, second: Loads) -> Loads:
    """The sum of two loads: the background that a later job plans on."""
    return _combined(first, second, operator.add)


def either_load(first: Loads, second: Loads) -> Loads:
    """The loads of two placements of which one is used at a time: the larger of both, everywhere."""
    return _combined(first, second, max)


def _combined(first: Loads, second: Loads, combine: Callable[[float, float], float]) -> Loads:
    def each(of_first: Mapping[Key, float], of_second: Mapping[Key, float]) -> dict[Key, float]:
        return {k: combine(of_first.get(k, 0.0), of_second.get(k, 0.0)) for k in {**of_first, **of_second}}

    return Loads(
        each(first.links, second.links),
        each(first.switches, second.switches),
        each(first.servers, second.servers),
        each(first.loopbacks, second.loopbacks),
    )


def _check_tree(fabric: Fabric, job: JobSpec, tree: Tree, fan_in: int | None, where: str) -> None:
    if fabric.is_host(tree.root):
        if tree.root not in job.parameter_servers:
            raise InvalidPlanError(f"{where}: the root is a host but no parameter server of the job")
    else:
        _check_node(fabric, tree.root, where)
    times = Counter(e.child for e in tree.edges)
    for child, count in times.items():
        if count > 1:
            raise InvalidPlanError(f"{where}: '{child}' has {count} edges; a child has one")
    inner = {e.parent for e in tree.edges} - {tree.root}
    for worker in job.workers:
        if worker not in times:
            raise InvalidPlanError(f"{where}: worker '{worker}' has no edge")
    for child in times.keys() - set(job.workers):
        if child not in inner:
            raise InvalidPlanError(
                f"{where}: '{child}' sends but is neither a worker nor a node with children"
            )
    for node in inner:
        _check_node(fabric, node, where)
    children = Counter(e.parent for e in tree.edges)
    for node, count in children.items():
        most = count if fabric.is_host(node) else fan_in or fabric.switch(node).max_children
        if count > most:
            raise InvalidPlanError(f"{where}: switch '{node}' has {count} children; {most} are the most")
    for edge in tree.edges:
        _check_path(fabric, edge, where)
    _check_ascent(tree, where)
    check_pipes(fabric, tree, where)
    _check_down(fabric, job, tree, where)
    if not fabric.is_host(tree.root) and (lost := unreached_by_resend(tree, job.workers)):
        raise InvalidPlanError(
            f"{where}: resent results for '{lost[0]}', back along its upstream path, do not reach '{lost[1]}'"
        )


def _check_node(fabric: Fabric, node: str, where: str) -> None:
    if node not in fabric.neighbors or fabric.is_host(node):
        raise InvalidPlanError(f"{where}: '{node}' aggregates but is no switch of fabric '{fabric.name}'")
    if fabric.switch(node).capacity <= 0:
        raise InvalidPlanError(f"{where}: switch '{node}' aggregates but has no aggregation capacity")


def _check_path(fabric: Fabric, edge: Edge, where: str) -> None:
    path = edge.path
    here = f"{where}: path {'-'.join(path)} of '{edge.child}'"
    if len(path) < 2 or path[0] != edge.child or path[-1] != edge.parent:
        raise InvalidPlanError(f"{here} does not run from '{edge.child}' to '{edge.parent}'")
    if len(set(path)) < len(path):
        raise InvalidPlanError(f"{here} passes a node twice")
    for hop in pairwise(path):
        if not fabric.has_link(*hop):
            raise InvalidPlanError(
                f"{here} uses {hop[0]}-{hop[1]}, which is no link of fabric '{fabric.name}'"
            )
    for node in path[1:-1]:
        if fabric.is_host(node):
            raise InvalidPlanError(f"{here} passes through host '{node}'")


def _check_ascent(tree: Tree, where: str) -> None:
    """Check that every child reaches the root."""
    parent = {e.child: e.parent for e in tree.edges}
    if tree.root in parent:
        raise InvalidPlanError(f"{where}: the root has an edge of its own")
    for child in parent:
        at, steps = child, 0
        while at != tree.root:
            if at not in parent or steps > len(parent):
                raise InvalidPlanError(f"{where}: the parents of '{child}' do not lead to the root")
            at, steps = parent[at], steps + 1


def _check_down(fabric: Fabric, job: JobSpec, tree: Tree, where: str) -> None:
    """Check that `result_links` are a tree: one link into each node but the root, everything reached from the root,
    workers the leaves."""
    below: dict[str, list[str]] = defaultdict(list)
    entered: set[str] = set()
    for a, b in tree.result_links:
        if not fabric.has_link(a, b):
            raise InvalidPlanError(
                f"{where}: the result tree uses {a}-{b}, which is no link of fabric '{fabric.name}'"
            )
        if b in entered or b == tree.root:
            raise InvalidPlanError(f"{where}: the result tree enters '{b}' twice")
        entered.add(b)
        below[a].append(b)
    reached = {tree.root, *(node for _, node in bfs_edges(tree.root, lambda at: below.get(at, ())))}
    for node in entered - reached:
        raise InvalidPlanError(f"{where}: the result tree to '{node}' does not start at the root")
    for worker in job.workers:
        if worker not in reached:
            raise InvalidPlanError(f"{where}: the result tree misses worker '{worker}'")
    for node in entered:
        if fabric.is_host(node) and (node not in job.workers or node in below):
            raise InvalidPlanError(f"{where}: the result tree passes host '{node}'")


def _check_stated(job: JobSpec, loads: Loads, stated: Loads) -> None:
    for kind in ("links", "switches", "servers", "loopbacks"):
        ours: Mapping[object, float] = getattr(loads, kind)
        theirs: Mapping[object, float] = getattr(stated, kind)
        for key in {*ours, *theirs}:
            mine, its = ours.get(key, 0.0), theirs.get(key, 0.0)
            if abs(mine - its) > TOLERANCE * max(mine, its):
                raise InvalidPlanError(
                    f"plan of job '{job.name}': load of {kind} {key} is {mine:g}, the plan has {its:g}"
                )


def check_capacities(fabric: Fabric, job: str, loads: Loads, background: Loads) -> None:
    """Check the resources that the plan uses; others may be full, or may have left the fabric while other jobs still
    use them. Raises InvalidPlanError."""
    here, total = f"plan of job '{job}'", add_loads(loads, background)
    for a, b in loads.links:
        _check_within(f"{here}: link {a}->{b}", total.links[a, b], fabric.link(a, b).rate)
    for switch in loads.switches:
        _check_within(f"{here}: switch {switch}", total.switches[switch], fabric.switch(switch).capacity)
    for server in loads.servers:
        _check_within(
            f"{here}: parameter server {server}", total.servers[server], fabric.ingress_capacity(server)
        )
    for switch, port in loads.loopbacks:
        what = f"{here}: loopback port {port} of switch {switch}"
        _check_within(what, total.loopbacks[switch, port], loopback_rate(fabric, switch, port))


def _check_within(what: str, load: float, capacity: float) -> None:
    if load > capacity * (1 + TOLERANCE):
        raise InvalidPlanError(f"{what} carries {load:g} of {capacity:g}")
