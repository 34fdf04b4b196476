# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A program of 128 children, which is not among the compiled ones, is the oracle's; with one word of a bitmap for the
whole, it is found out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.fixtures import SETTINGS
from tests.dataplane.frames import LANES
from tests.dataplane.mutants import proofs
from tests.dataplane.test_children import Size, node, send_any_packets

CHILDREN = 128
FLAG = f"-DCHILDREN={CHILDREN}"
BITMAP, QUORUM = "v1model/slot_bitmap.p4", "quorum/on.p4"
WORD = "(bitmap_t)(bit<32>)"

MUTANTS = [
    ("a bitmap holds a word", BITMAP, "bitmap = meta.slot", f"bitmap = {WORD}meta.slot"),
    ("a claim writes a word", BITMAP, "index, bitmap", f"index, {WORD}bitmap"),
    ("a word has the duplicates", BITMAP, "meta.child_mask) != 0", f"{WORD}meta.child_mask) != 0"),
    ("a word is complete", BITMAP, "bitmap == meta.full_mask", f"bitmap & 0xFFFFFFFF == {WORD}meta.full_mask"),
    ("a read shows a word", "v1model/netfold.p4", "0, meta.slot.bitmap_before", f"0, {WORD}meta.slot.bitmap_before"),
    ("a quorum counts a word", QUORUM, "counted = counted | meta", f"counted = {WORD}counted | meta"),
    ("a word has the late", QUORUM, "own_bit = counted & meta", f"own_bit = {WORD}counted & meta"),
]  # fmt: skip


def explore(program: Path) -> None:
    """Sums, duplicates, stale chunks, quorums and reads of a node as wide as its bitmap."""
    with SoftDevice(program, cache=program.parent, children=CHILDREN) as device:
        for quorum in (None, CHILDREN // 2):
            for is_root in (True, False):
                device.clear()
                bench = Bench(device, LANES, Tally(), "mutant")
                at = node(Size(CHILDREN, CHILDREN), is_root=is_root)
                at = replace(at, quorum=quorum if is_root or quorum is None else 0)
                bench.install(*SETTINGS, at)
                send_any_packets(bench, at, 16 * CHILDREN)


test_a_mutant_is_another_program, test_the_program_as_it_is_passes, test_a_mutant_is_found = proofs(
    MUTANTS, explore, FLAG, once=True
)
