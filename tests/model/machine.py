# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One slot of docs/reference/protocol.md, section 3, as a pure function, and the rules around it, each one a method
that a mutant can break.

The model's values are exact integers: saturation and exponents have tests of their own.
`test_machine.py` compares `Machine.step` with `tests.slot_oracle.SlotPool` on every small state.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Step(Enum):
    """A row of the table of section 3.2 for one packet."""

    STALE = "stale_chunk"
    ACCUMULATED = "accumulated"
    DUPLICATE = "duplicate"
    COMPLETED = "sent"
    RESENT = "resent"


class Reply(Enum):
    """A packet that leaves a node."""

    NOTHING = "nothing"
    RESULT_TO_ALL = "a result to all children"
    RESULT_TO_CHILD = "a result to the child that asked"
    SUM_UP = "a sum up"


class Slot(NamedTuple):
    """`seen` has a bit for each child, `marks` are the sticky flags, `total` is the sum."""

    tag: int
    seen: int
    marks: int
    total: int


EMPTY = Slot(0, 0, 0, 0)


class Life(NamedTuple):
    """One installation of the tree: what a raised epoch, or another tree on the same slots, changes."""

    tree: int
    epoch: int


class Machine:
    """The rules of the protocol. A mutant overrides one of them."""

    def admits(self, here: Life, packet: Life) -> bool:
        """The admission entry of a node whose tree is installed as `here`."""
        return packet == here

    def tag(self, epoch: int, round_: int) -> int:
        return epoch << 20 | round_

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        if tag < slot.tag:
            return slot, Step.STALE
        repeated = False
        if tag > slot.tag:
            after = Slot(tag, bit, marks, value)
        elif slot.seen & bit:
            after, repeated = slot._replace(marks=slot.marks | marks), True
        else:
            after = Slot(tag, slot.seen | bit, slot.marks | marks, slot.total + value)
        if after.seen != full:
            return after, Step.DUPLICATE if repeated else Step.ACCUMULATED
        return after, Step.RESENT if repeated else Step.COMPLETED

    def reply(self, root: bool, step: Step) -> Reply:
        if step is Step.COMPLETED:
            return Reply.RESULT_TO_ALL if root else Reply.SUM_UP
        if step is Step.RESENT:
            return Reply.RESULT_TO_CHILD if root else Reply.SUM_UP
        return Reply.NOTHING

    def takes(self, here: Life, packet: Life) -> bool:
        """Return whether a worker takes a result."""
        return packet == here


PROTOCOL = Machine()
