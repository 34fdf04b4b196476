# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads slots of a job at their switches: one slot with its contributions and sum, and the children that all open slots
lack. Only the switches have the contributors of a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.lifecycle.member_status import Progress
from netfold.controller.planning.pipes import pipe_of_node
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.management import SlotView
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing
from netfold.protocol.wire import Kind
from netfold.topologies.fabric import Fabric

SAMPLED_SLOTS = 32

MAX_AWAITED = 16
"""Slots of a tree that are read because most workers wait for them."""


class NoSuchSlotError(Exception):
    """The switch does not add up for the job, or its tree has fewer slots."""


async def read_slot(
    fabric: Fabric, slots: SlotAccess, job: JobRecord, request: pb.ReadSlotRequest
) -> pb.SlotContents:
    """Raises NoSuchSlotError, SwitchUnreachableError."""
    tree, allocated = _tree_at(job, request)
    if request.slot >= allocated.slots:
        raise NoSuchSlotError(
            f"slot {request.slot}: tree {allocated.tree} has {allocated.slots} slots; "
            f"expected 0 to {allocated.slots - 1}"
        )
    register = allocated.bases[request.switch] + request.slot
    pipe = pipe_of_node(fabric, tree, request.switch)
    view = await slots.manage(request.switch, Kind.READ, register, pipe)
    children = tree.children(request.switch)
    return pb.SlotContents(
        tree=allocated.tree,
        slots=allocated.slots,
        register=register,
        epoch=view.epoch,
        round=view.round,
        contributors=[child for bit, child in enumerate(children) if view.bitmap >> bit & 1],
        missing=[child for bit, child in enumerate(children) if not view.bitmap >> bit & 1],
        overflow=view.overflow,
        congestion=view.congestion,
        exponent=view.exponent,
        lanes=view.lanes,
    )


def _tree_at(job: JobRecord, request: pb.ReadSlotRequest) -> tuple[Tree, AllocatedTree]:
    """The tree of the request, or the job's first one that adds up at the switch."""
    if job.placement is None:
        raise NoSuchSlotError(f"job '{job.name}' is not installed: it has no slots")
    trees = list(zip(job.placement.plan.trees, job.placement.trees, strict=True))
    for tree, allocated in trees:
        if request.switch in allocated.bases and request.tree in (0, allocated.tree):
            return tree, allocated
    places = [f"{switch} (tree {allocated.tree})" for _, allocated in trees for switch in allocated.bases]
    wanted = f"tree {request.tree} of job" if request.tree else "job"
    raise NoSuchSlotError(
        f"{wanted} '{job.name}' adds up nothing at '{request.switch}'; it does at {listing(places) or 'no switch'}"
    )


@dataclass(frozen=True)
class OpenSlots:
    """A sample of a tree's slots at one node. `used`: those of the epoch; `waiting`: those of them that lack a child;
    `missing`: in how many each child is missing. `lost`: in how many of them although it was sent, as the worker waits
    for that slot, or the switch has added it up. `undelivered`: workers that wait for a slot which has its sum.
    `paths`: of each child to the node. `error`: why they cannot be read."""

    switch: str
    tree: int
    read: int = 0
    used: int = 0
    waiting: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    undelivered: tuple[str, ...] = ()
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""


async def read_open_slots(
    fabric: Fabric,
    slots: SlotAccess,
    planned: AllocatedTree,
    tree: Tree,
    epoch: int,
    reports: Mapping[str, Progress],
    *,
    spread: int = SAMPLED_SLOTS,
) -> list[OpenSlots]:
    """The sample has the slots that the workers wait for, by their `reports`: of a small call there are few.
    `spread`: number of further ones."""
    awaited_by = {
        host: t.open_slot - 1
        for host, p in reports.items()
        for t in p.trees
        if t.tree == planned.tree and t.open_slot
    }
    awaited = [slot for slot, _ in Counter(awaited_by.values()).most_common(MAX_AWAITED)]
    sample = range(0, planned.slots, max(1, planned.slots // spread)) if spread else ()
    offsets = sorted({o for o in (*awaited, *sample) if o < planned.slots})
    nodes: dict[str, _Node] = {}
    found = []
    for switch in _children_first(tree, planned.bases):
        try:
            pipe = pipe_of_node(fabric, tree, switch)
            views = {
                o: await slots.manage(switch, Kind.READ, planned.bases[switch] + o, pipe) for o in offsets
            }
        except SwitchUnreachableError as error:
            found.append(OpenSlots(switch, planned.tree, error=f"{error}"))
            continue
        used = {o: v for o, v in views.items() if v.epoch == epoch}
        nodes[switch] = _Node(used, (1 << len(tree.children(switch))) - 1)
        found.append(_open_slots(switch, planned.tree, tree, len(views), nodes, awaited_by))
    return found


def _children_first(tree: Tree, nodes: Container[str]) -> list[str]:
    """A child is read before its parent: what it has added up has been sent by the time its parent is read."""

    def below(node: str) -> Iterator[str]:
        for child in tree.children(node):
            yield from below(child)
        if node in nodes:
            yield node

    return list(below(tree.root))


@dataclass(frozen=True)
class _Node:
    """The slots of a switch that the epoch uses, by their offsets. `full`: contributors of a slot that has its sum."""

    used: Mapping[int, SlotView]
    full: int

    def has_sum(self, offset: int, round_: int) -> bool:
        view = self.used.get(offset)
        return view is not None and view.bitmap == self.full and view.round == round_


def _open_slots(
    switch: str, number: int, tree: Tree, read: int, nodes: Mapping[str, _Node], awaited_by: Mapping[str, int]
) -> OpenSlots:
    """The open slots of the last of `nodes`, whose children are among them."""
    node, children = nodes[switch], tree.children(switch)

    def has_sent(child: str, offset: int, view: SlotView) -> bool:
        if child in nodes:
            return nodes[child].has_sum(offset, view.round)
        return awaited_by.get(child) == offset

    waiting = [(o, v) for o, v in node.used.items() if v.bitmap != node.full]
    missing = [(c, o, v) for o, v in waiting for i, c in enumerate(children) if not v.bitmap >> i & 1]
    sums = {o for o, v in node.used.items() if v.bitmap == node.full} if switch == tree.root else set()
    return OpenSlots(
        switch,
        number,
        read,
        len(node.used),
        len(waiting),
        dict(Counter(c for c, _, _ in missing).most_common()),
        dict(Counter(c for c, o, v in missing if has_sent(c, o, v))),
        tuple(w for w in tree.workers_below(switch) if awaited_by.get(w) in sums),
        {e.child: e.path for e in tree.edges if e.parent == switch},
    )
