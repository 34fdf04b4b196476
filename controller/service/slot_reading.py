# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One slot of a job, read at its switch: which contributions its sum has, and the sum."""

from __future__ import annotations

from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.planning.pipes import pipe_of_node
from netfold.controller.planning.plan import Tree
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing
from netfold.protocol.wire import Kind
from netfold.topologies.fabric import Fabric


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
