# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads which children the open slots of a job lack. Only the switches have the contributors of a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.records import AllocatedTree
from netfold.controller.lifecycle.member_status import Progress
from netfold.controller.planning.pipes import pipe_of_node
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.wire import Kind
from netfold.topologies.fabric import Fabric

SAMPLED_SLOTS = 32
MAX_AWAITED = 16
"""Slots of a tree that are read because most workers wait for them."""


@dataclass(frozen=True)
class OpenSlots:
    """A sample of a tree's slots at one node. `used`: those of the epoch; `waiting`: those of them that lack a child;
    `missing`: in how many each child is missing. `lost`: in how many of them although it was sent, as the worker waits
    for that slot, or one below a switch does. `paths`: of each child to the node. `error`: why they cannot be read."""

    switch: str
    tree: int
    read: int = 0
    used: int = 0
    waiting: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
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
    return [
        await _read_node(fabric, slots, planned, tree, epoch, switch, offsets, awaited_by)
        for switch in planned.bases
    ]


async def _read_node(
    fabric: Fabric,
    slots: SlotAccess,
    planned: AllocatedTree,
    tree: Tree,
    epoch: int,
    switch: str,
    offsets: Sequence[int],
    awaited_by: Mapping[str, int],
) -> OpenSlots:
    children = tree.children(switch)
    full = (1 << len(children)) - 1
    try:
        pipe = pipe_of_node(fabric, tree, switch)
        views = [await slots.manage(switch, Kind.READ, planned.bases[switch] + o, pipe) for o in offsets]
    except SwitchUnreachableError as error:
        return OpenSlots(switch, planned.tree, error=f"{error}")
    used = [(o, v) for o, v in zip(offsets, views, strict=True) if v.epoch == epoch]
    waiting = [(o, v) for o, v in used if v.bitmap != full]
    missing = [(c, o) for o, v in waiting for i, c in enumerate(children) if not v.bitmap >> i & 1]
    sent = {c: {awaited_by[w] for w in tree.workers_below(c) if w in awaited_by} for c in children}
    return OpenSlots(
        switch,
        planned.tree,
        len(views),
        len(used),
        len(waiting),
        dict(Counter(c for c, _ in missing).most_common()),
        dict(Counter(c for c, o in missing if o in sent[c])),
        {e.child: e.path for e in tree.edges if e.parent == switch},
    )
