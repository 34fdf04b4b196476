# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/explanation/how-a-sum-is-made.md are those of the slot machine, and its picture shows them."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

from tests.slot_oracle import SlotPool

PAGE = Path(__file__).parents[2] / "docs/explanation/how-a-sum-is-made.md"
GRADIENT = re.compile(r"GRADIENT (?P<value>\d+) of (?P<sender>\w+)(?: again)?, tag (?P<tag>\d+)")
CHILD_BITS = {"h1": 0, "h2": 1, "leaf1": 0, "h3": 1}


def steps() -> Iterator[list[str]]:
    """Yield the cells of the table's rows, without the number of the step."""
    for line in PAGE.read_text().splitlines():
        if re.match(r"\| \d", line):
            yield [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_each_gradient_does_what_the_page_says():
    nodes = {"leaf1": SlotPool(1, 1, 2, root=False), "spine1": SlotPool(1, 1, 2, root=True)}
    gradients = [(GRADIENT.fullmatch(cells[0]), cells[1:]) for cells in steps()]
    assert len(gradients) == 9
    for found, (node, tag, bitmap, lane, verdict, leaves) in gradients:
        if found is None:  # a RESULT, which has no slot
            assert (tag, bitmap, lane, verdict) == ("", "", "", "multicast")
            continue
        pool = nodes[node]
        assert pool.tag(0) == int(tag)
        bit = CHILD_BITS[found["sender"]]
        outcome = pool.gradient(int(found["tag"]), 0, bit, 0, 0, [int(found["value"])])
        held = pool.read(0)
        assert (sum(1 << bit for bit in held.seen), int(held.lanes[0])) == (int(bitmap, 2), int(lane))
        assert outcome.verdict.label == verdict
        kind = "RESULT" if pool.root else "GRADIENT"
        sent = "" if outcome.packet is None else f"{kind} {outcome.packet.lanes[0]}"
        assert re.sub(r" to .*", "", leaves) == sent


def test_the_picture_shows_the_steps_of_the_table():
    script = PAGE.parents[1] / "sum_picture.py"
    drawing = runpy.run_path(str(script))
    assert drawing["PICTURE"].read_text() == drawing["draw"](), f"stale: run python {script}"
