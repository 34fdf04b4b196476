# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads which children the open slots of a job lack: only the switches know who contributed to a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.records import AllocatedTree
from netfold.controller.planning.pipes import pipe_of_node
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.wire import Kind
from netfold.topologies.fabric import Fabric

SAMPLED_SLOTS = 32


@dataclass(frozen=True)
class OpenSlots:
    """A sample of a tree's slots at one node, spread over the range. `used`: those of the epoch; `waiting`: those of
    them that lack a child; `missing`: in how many each child is missing. `paths`: of each child to the node. `error`:
    why they cannot be read."""

    switch: str
    tree: int
    read: int = 0
    used: int = 0
    waiting: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""


async def read_open_slots(
    fabric: Fabric, slots: SlotAccess, planned: AllocatedTree, tree: Tree, epoch: int
) -> list[OpenSlots]:
    return [await _read_node(fabric, slots, planned, tree, epoch, switch) for switch in planned.bases]


async def _read_node(
    fabric: Fabric, slots: SlotAccess, planned: AllocatedTree, tree: Tree, epoch: int, switch: str
) -> OpenSlots:
    children = tree.children(switch)
    full = (1 << len(children)) - 1
    offsets = range(0, planned.slots, max(1, planned.slots // SAMPLED_SLOTS))
    try:
        pipe = pipe_of_node(fabric, tree, switch)
        views = [await slots.manage(switch, Kind.READ, planned.bases[switch] + o, pipe) for o in offsets]
    except SwitchUnreachableError as error:
        return OpenSlots(switch, planned.tree, error=f"{error}")
    used = [v for v in views if v.epoch == epoch]
    waiting = [v for v in used if v.bitmap != full]
    missing = Counter(c for v in waiting for i, c in enumerate(children) if not v.bitmap >> i & 1)
    return OpenSlots(
        switch,
        planned.tree,
        len(views),
        len(used),
        len(waiting),
        dict(missing.most_common()),
        {e.child: e.path for e in tree.edges if e.parent == switch},
    )
