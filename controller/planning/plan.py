# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the plan, the result of every planner. A job is a set of weighted aggregation trees.

A tree's **root** is a parameter-server host or a switch that multicasts the sum. Every worker and every
inner node (a switch that aggregates) is the child of exactly one **edge**, which names its parent and the
path of pass-through switches between the two. A tree carries a **share** of the gradient. If every worker
sends `rate`, each edge of the tree carries `share * rate`: an aggregated stream leaves at the rate of one
worker (GRID section 2.2). Results travel along `result_links`, directed fabric links that form a tree from
the root to every worker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from netfold.controller.planning.hierarchy import Hierarchy, Ranks


class PlanningError(Exception):
    """There is no plan; the message names the bottleneck and a request that would fit."""


class InvalidPlanError(PlanningError):
    """A plan violates a rule of section 'Plan' or a capacity; raised by the validator only."""


@dataclass(frozen=True)
class Edge:
    """A sender of a tree and the node that aggregates its packets. `path` runs from child to parent, both included; the
    switches between forward the packets."""

    child: str
    parent: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    root: str
    share: float
    edges: tuple[Edge, ...]
    result_links: tuple[tuple[str, str], ...]

    def children(self, node: str) -> tuple[str, ...]:
        """The children of `node`, in the order of `edges`."""
        return self._children.get(node, ())

    @cached_property
    def _children(self) -> Mapping[str, tuple[str, ...]]:
        """The children by parent: a large tree's entries are made of each node's."""
        children = defaultdict[str, list[str]](list)
        for edge in self.edges:
            children[edge.parent].append(edge.child)
        return {parent: tuple(own) for parent, own in children.items()}

    def workers_below(self, child: str) -> tuple[str, ...]:
        """The workers whose gradients are in the packets of `child`: `child` itself, if it has no children."""
        below = self.children(child)
        return tuple(w for c in below for w in self.workers_below(c)) if below else (child,)

    @cached_property
    def touched(self) -> frozenset[str]:
        """The hosts and switches that the packets of the tree pass."""
        return frozenset(n for e in self.edges for n in e.path) | {
            n for link in self.result_links for n in link
        }

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes that aggregate: the inner nodes in the order of `edges`, then the root."""
        inner = [e.parent for e in self.edges if e.parent != self.root]
        return (*dict.fromkeys(inner), self.root)


@dataclass(frozen=True)
class JobSpec:
    """A job for a planner. `parameter_servers` are candidates: hosts that may be roots; a planner may use fewer.
    `elements` is the size of the gradient, in numbers of 4 bytes. `options` are for the scheme (such as the variant of
    ATP). Each worker is a host of `ranks.per_host` ranks."""

    name: str
    workers: tuple[str, ...]
    parameter_servers: tuple[str, ...] = ()
    elements: int = 1_000_000
    scheme: str = "auto"
    options: Mapping[str, str | float | int | bool] = field(default_factory=dict)
    ranks: Ranks = field(default_factory=Ranks)


@dataclass(frozen=True)
class Loads:
    """The loads of a set of trees at some rate (fabric units). Links are directed (from, to),
    loopback ports (switch, port)."""

    links: Mapping[tuple[str, str], float] = field(default_factory=dict)
    switches: Mapping[str, float] = field(default_factory=dict)
    servers: Mapping[str, float] = field(default_factory=dict)
    loopbacks: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def times(self, factor: float) -> Loads:
        """The loads of the same trees at another rate."""
        return Loads(
            {k: v * factor for k, v in self.links.items()},
            {k: v * factor for k, v in self.switches.items()},
            {k: v * factor for k, v in self.servers.items()},
            {k: v * factor for k, v in self.loopbacks.items()},
        )


@dataclass(frozen=True)
class Plan:
    """A feasible plan. `rate` is the minimum over workers of the rate that each may send (fabric units), after repair.

    bound                  upper bound of the rate from the scheme's own relaxation (None: it has none)
    rounded_rate           rate before repair, which may exceed a capacity (None: nothing is rounded)
    published              the paper's figure for this example (None: there is none)
    stopped                limit that ended an exact search before its proof: `steps`, or `time`, the safety net
    hierarchy              how the ranks of a host reduce, if a host has several (None: one rank a host)
    assumed_cross_traffic  cross traffic that was measured on links when the plan was made; the plan leaves room for it
    pacing_rate            rate at which workers send while cross traffic leaves room for it: cross traffic is no
                           reservation (None: `rate`)
    """

    job: str
    fabric: str
    algorithm: str
    unit: str
    trees: tuple[Tree, ...]
    rate: float
    loads: Loads
    bound: float | None = None
    rounded_rate: float | None = None
    published: float | None = None
    solve_s: float = 0.0
    seed: int | None = None
    stopped: str | None = None
    hierarchy: Hierarchy | None = None
    assumed_cross_traffic: Loads = field(default_factory=Loads, repr=False)
    pacing_rate: float | None = None

    def times(self, factor: float) -> Plan:
        """The same plan where all capacities are `factor` times as great."""

        def scaled(rate: float | None) -> float | None:
            return None if rate is None else rate * factor

        return replace(
            self,
            rate=self.rate * factor,
            loads=self.loads.times(factor),
            assumed_cross_traffic=self.assumed_cross_traffic.times(factor),
            pacing_rate=scaled(self.pacing_rate),
            bound=scaled(self.bound),
            rounded_rate=scaled(self.rounded_rate),
        )

    @property
    def gap(self) -> float | None:
        """Bound minus rate, as a fraction of the bound."""
        return None if not self.bound else max(0.0, 1.0 - self.rate / self.bound)
