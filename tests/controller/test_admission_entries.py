# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Switches have room for a number of admission entries; trees that are gone take none, and no memory."""

from __future__ import annotations

import gc
import weakref

import pytest

from netfold.controller.jobs.records import AllocatedTree, Placement
from netfold.controller.lifecycle.admission_entries import MAX_ENTRIES, AdmissionEntries
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.planning.plan import Loads, Plan, Tree
from tests.controller.test_tree_numbers import TWO_RACKS, rack_tree


def rack(leaf: str) -> Placement:
    """A tree of a leaf's two hosts."""
    tree = rack_tree(leaf, ("h1", "h2") if leaf == "leaf1" else ("h3", "h4"))
    numbers = AllocatedTree(tree=1, slots=16, window=8, bases={leaf: 0})
    return Placement(
        plan=Plan("job", "fabric", "test", "Gbit/s", (tree,), 1.0, Loads()), trees=(numbers,), epoch=1
    )


def test_a_tree_that_is_gone_is_forgotten() -> None:
    entries, stays = AdmissionEntries(TWO_RACKS), rack("leaf1")
    gone: list[weakref.ref[Tree]] = []
    for _ in range(50):
        placement = rack("leaf2")
        entries.check(placement, [stays])
        gone.append(weakref.ref(placement.plan.trees[0]))
    del placement
    gc.collect()
    assert [r for r in gone if r() is not None] == []


def test_a_full_switch_is_named_and_the_end_of_trees_makes_room() -> None:
    entries, many = AdmissionEntries(TWO_RACKS), [rack("leaf1")] * MAX_ENTRIES
    with pytest.raises(RefusedError, match=f"switch leaf1 would hold .* it has {MAX_ENTRIES}"):
        entries.check(rack("leaf1"), many)
    entries.check(rack("leaf2"), many[:8])
    entries.check(rack("leaf1"), many[:8])
