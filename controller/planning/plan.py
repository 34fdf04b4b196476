# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The plan: what every planner returns and all else reads. A job is a set of weighted aggregation trees.

A tree's **root** is a parameter-server host or a switch that turns the sum around. Every worker and every
inner node (a switch that aggregates) is the child of exactly one **edge**, which names its parent and the
path of pass-through switches between the two. A tree carries a **share** of the gradient. If every worker
sends `rate`, each edge of the tree carries `share * rate`: an aggregated stream leaves at the rate of one
worker (GRID section 2.2). Results go **down** along `down`, directed fabric links that form a tree from
the root to every worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from netfold.controller.planning.hierarchy import Hierarchy, Ranks


class PlanningError(Exception):
    """No plan can be given; the message says which resource binds and what would fit."""


class InvalidPlan(PlanningError):
    """A plan breaks a rule of section 'Plan' or a capacity; raised by the validator only."""


@dataclass(frozen=True)
class Edge:
    """One sender of a tree and where its packets are added up. `path` runs from child to parent, both
    included; what lies between passes the packets through."""

    child: str
    parent: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    root: str
    share: float
    edges: tuple[Edge, ...]
    down: tuple[tuple[str, str], ...]

    def children(self, node: str) -> tuple[str, ...]:
        """The children whose packets `node` adds up, in the order of `edges`."""
        return tuple(e.child for e in self.edges if e.parent == node)

    def workers_below(self, child: str) -> tuple[str, ...]:
        """The workers whose gradients are in the packets of `child`: itself, if it adds nothing up."""
        below = self.children(child)
        return tuple(w for c in below for w in self.workers_below(c)) if below else (child,)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All that aggregate: the inner nodes in the order of `edges`, then the root."""
        inner = [e.parent for e in self.edges if e.parent != self.root]
        return (*dict.fromkeys(inner), self.root)


@dataclass(frozen=True)
class JobSpec:
    """What a planner needs to know of a job. `parameter_servers` are candidates: hosts that may be roots;
    a planner may use fewer. `elements` is the gradient's size, in numbers of 4 bytes. `options` go to the scheme
    (e.g. ATP's variant). Each worker is a host of `ranks.per_host` ranks."""

    name: str
    workers: tuple[str, ...]
    parameter_servers: tuple[str, ...] = ()
    elements: int = 1_000_000
    scheme: str = "auto"
    options: Mapping[str, str | float | int | bool] = field(default_factory=dict)
    ranks: Ranks = field(default_factory=Ranks)


@dataclass(frozen=True)
class Loads:
    """What a set of trees at some rate puts on the fabric (fabric units). Links are directed (from, to),
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
    """A feasible plan. `rate` is the minimum over workers of what each may send (fabric units), after repair.

    bound         an upper bound of the rate from the scheme's own relaxation (None where it has none)
    rounded_rate  the rate before repair, which may overrun a capacity (None where nothing is rounded)
    published     the paper's figure for this example (None where there is none)
    stopped       what ended an exact search before its proof: `steps`, or `time`, the safety net (None where none did)
    hierarchy     of a job with several ranks a host: by it and the rate follows how they reduce (None for others)
    beside        what others sent when it was made, that it leaves room for: links alone
    pace          with which it is sent as long as they let it, as theirs is no promise (None: `rate`)
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
    beside: Loads = field(default_factory=Loads, repr=False)
    pace: float | None = None

    def times(self, factor: float) -> Plan:
        """The same trees where all capacities are `factor` times as great."""

        def scaled(rate: float | None) -> float | None:
            return None if rate is None else rate * factor

        return replace(
            self,
            rate=self.rate * factor,
            loads=self.loads.times(factor),
            beside=self.beside.times(factor),
            pace=scaled(self.pace),
            bound=scaled(self.bound),
            rounded_rate=scaled(self.rounded_rate),
        )

    @property
    def gap(self) -> float | None:
        """How far below the bound the rate is, as a fraction of the bound."""
        return None if not self.bound else max(0.0, 1.0 - self.rate / self.bound)
