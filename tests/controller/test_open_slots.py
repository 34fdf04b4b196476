# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Slots of switches made by hand show which contributions and which sums are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import cast

from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.records import AllocatedTree
from netfold.controller.lifecycle.member_status import Progress, TreeProgress
from netfold.controller.planning.plan import Edge, Tree
from netfold.controller.service.open_slots import OpenSlots, read_open_slots
from netfold.controller.switches.management import SlotView
from netfold.protocol.wire import Kind
from netfold.topologies.spec import load_fabric

EPOCH = 3
FULL = 0b11
TREE = Tree(
    "leaf1",
    1.0,
    (
        Edge("h5", "leaf2", ("h5", "leaf2")),
        Edge("h6", "leaf2", ("h6", "leaf2")),
        Edge("h1", "leaf1", ("h1", "leaf1")),
        Edge("leaf2", "leaf1", ("leaf2", "spine1", "leaf1")),
    ),
    (),
)


class Slots:
    """The contributors and the round of slots, by switch and offset."""

    def __init__(self, contents: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        self._contents = contents

    async def manage(self, switch: str, kind: Kind, slot: int, pipe: int | None = None) -> SlotView:
        bitmap, round_ = self._contents[switch].get(slot, (FULL, 0))
        return SlotView(1, 7, slot, 0, IPv4Address(0), EPOCH, round_, bitmap, False, False, 0, ())


def read(
    contents: Mapping[str, Mapping[int, tuple[int, int]]], awaited: Mapping[str, int]
) -> dict[str, OpenSlots]:
    """The nodes, where each worker waits for the slot of `awaited`."""
    reports = {h: Progress(trees=(TreeProgress(7, open_slot=1 + o),)) for h, o in awaited.items()}
    planned = AllocatedTree(tree=7, slots=8, window=4, bases={"leaf2": 0, "leaf1": 0})
    fabric = load_fabric("leaf-spine-2x2")
    slots = cast(SlotAccess, Slots(contents))
    nodes = asyncio.run(read_open_slots(fabric, slots, planned, TREE, EPOCH, reports))
    return {n.switch: n for n in nodes}


def test_a_sum_that_a_switch_has_and_its_parent_lacks_is_lost() -> None:
    nodes = read({"leaf2": {2: (FULL, 5)}, "leaf1": {2: (0b01, 5)}}, {"h1": 2, "h5": 2, "h6": 2})
    assert nodes["leaf1"].lost == {"leaf2": 1}
    assert nodes["leaf1"].paths["leaf2"] == ("leaf2", "spine1", "leaf1")
    assert not nodes["leaf2"].lost


def test_a_switch_that_waits_itself_has_lost_nothing() -> None:
    """Where h5 lacks the sum of slot 1, its window holds back slot 2."""
    nodes = read({"leaf2": {2: (0b10, 5)}, "leaf1": {2: (0b01, 5)}}, {"h1": 2, "h5": 1, "h6": 2})
    assert nodes["leaf1"].missing == {"leaf2": 1}
    assert not nodes["leaf1"].lost
    assert nodes["leaf2"].missing == {"h5": 1}
    assert not nodes["leaf2"].lost
    assert nodes["leaf1"].undelivered == ("h5",)


def test_a_sum_of_an_earlier_round_was_not_sent_for_this_one() -> None:
    nodes = read({"leaf2": {2: (FULL, 4)}, "leaf1": {2: (0b01, 5)}}, {"h1": 2})
    assert not nodes["leaf1"].lost


def test_a_worker_that_waits_for_its_own_contribution_has_lost_it() -> None:
    nodes = read({"leaf2": {2: (0b10, 5)}, "leaf1": {2: (0b01, 5)}}, {"h5": 2, "h6": 2})
    assert nodes["leaf2"].lost == {"h5": 1}
