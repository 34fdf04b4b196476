# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the controller remembers of a job, as frozen values: the store keeps them, everything else derives
from them."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from netfold.controller.planning.plan import Edge, Loads, Plan, Tree

LAST_EPOCH = 4095


class JobState(StrEnum):
    """As in api/netfold.proto."""

    QUEUED = "queued"
    INSTALLING = "installing"
    RUNNING = "running"
    FAILED = "failed"
    DONE = "done"
    CANCELED = "canceled"

    @property
    def over(self) -> bool:
        return self in (JobState.FAILED, JobState.DONE, JobState.CANCELED)

    @property
    def installed(self) -> bool:
        """Switches hold entries for it."""
        return self in (JobState.INSTALLING, JobState.RUNNING)


def _plan_to_json(plan: Plan) -> dict[str, Any]:
    """JSON has no pairs as keys: the links become rows of from, to, load."""
    rows = [[a, b, load] for (a, b), load in plan.loads.links.items()]
    looped = [[s, port, load] for (s, port), load in plan.loads.loopbacks.items()]
    loads = {
        "links": rows,
        "switches": dict(plan.loads.switches),
        "servers": dict(plan.loads.servers),
        "loopbacks": looped,
    }
    fields = {f.name: getattr(plan, f.name) for f in dataclasses.fields(plan)}
    return {**fields, "loads": loads, "trees": [dataclasses.asdict(t) for t in plan.trees]}


def _plan_from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    loads = value["loads"]
    links = {(a, b): load for a, b, load in loads["links"]}
    looped = {(s, port): load for s, port, load in loads.get("loopbacks", [])}
    trees = (
        Tree(
            t["root"],
            t["share"],
            tuple(Edge(e["child"], e["parent"], tuple(e["path"])) for e in t["edges"]),
            tuple((a, b) for a, b in t["down"]),
        )
        for t in value["trees"]
    )
    known = Loads(links, loads["switches"], loads["servers"], looped)
    return Plan(**{**value, "trees": tuple(trees), "loads": known})


PlanField = Annotated[Plan, BeforeValidator(_plan_from_json), PlainSerializer(_plan_to_json)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class PlannedTree(_Record):
    """netfold.controller.planning.plan.Tree with what the installation chose for it.

    tree   number in the fabric, 1 ... 1023; also its tree_index and multicast group on every switch
    slots  A; bases are the first slots of the tree's ranges, by switch that adds up
    window W
    """

    tree: int
    slots: int
    window: int
    bases: dict[str, int]


class Placement(_Record):
    """A plan with all numbers chosen: `trees` are in the order of `plan.trees`."""

    plan: PlanField
    trees: tuple[PlannedTree, ...]
    epoch: int

    @property
    def links(self) -> set[frozenset[str]]:
        """All links that the placement's packets take."""
        used: set[frozenset[str]] = set()
        for tree in self.plan.trees:
            used.update(frozenset(pair) for pair in tree.down)
            for edge in tree.edges:
                used.update(frozenset(pair) for pair in pairwise(edge.path))
        return used

    @property
    def roots(self) -> set[str]:
        return {t.root for t in self.plan.trees}


class Member(_Record):
    """A worker or parameter server of a job. `joined`: it has attended at least once; `left`: it is done."""

    host: str
    parameter_server: bool = False
    joined: bool = False
    left: bool = False


class JobRecord(_Record):
    """A job. `seq` orders jobs by their submission; `lost` are members that a job went on without. While
    a job moves, `previous` is the placement that stays installed until the new one is."""

    name: str
    seq: int
    spec_yaml: str
    state: JobState
    reason: str = ""
    udp_port: int = 0
    placement: Placement | None = None
    previous: Placement | None = None
    members: tuple[Member, ...] = ()
    lost: tuple[str, ...] = ()
    submitted: float = 0.0
    ended: float = 0.0

    @property
    def epoch(self) -> int:
        return 0 if self.placement is None else self.placement.epoch

    @property
    def placements(self) -> tuple[Placement, ...]:
        """All that switches hold for the job, if it is installed."""
        if not self.state.installed:
            return ()
        return tuple(p for p in (self.placement, self.previous) if p is not None)

    @property
    def nodes(self) -> set[str]:
        """Hosts and switches that the job's packets touch, in any placement that is installed."""
        return {n for p in self.placements for link in p.links for n in link}

    def member(self, host: str) -> Member | None:
        return next((m for m in self.members if m.host == host), None)

    def with_member(self, host: str, **changes: bool) -> JobRecord:
        members = tuple(m.model_copy(update=changes) if m.host == host else m for m in self.members)
        return self.model_copy(update={"members": members})
