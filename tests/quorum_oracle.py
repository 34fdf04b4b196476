# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The slots of a tree whose sums may be sealed without all workers: docs/reference/protocol.md, section 3.7. The
oracle of the tests, for switches and for traffic/engine/server/slot_pool.c."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from netfold.protocol.wire import COUNT_MAX, FLAGS, Flag, Verdict
from tests.slot_oracle import SlotOutcome, SlotPool, Sum


@dataclass
class _Quorum:
    """Beside the sum of a slot: which workers are in (a bit each), how many contributions that makes, whether a
    worker's deadline is over, and whether the sum went."""

    bitmap: int = 0
    count: int = 0
    asked: bool = False
    sealed: bool = False


class QuorumPool:
    """`children`: those of the node itself, with the lowest bits; `below`: at a root, all senders under its inner
    nodes, with the bits after these. `least`: contributions that are enough at the root once a deadline is over."""

    def __init__(self, slots: int, lanes: int, children: int, root: bool, least: int, below: int = 0) -> None:
        self.pool = SlotPool(slots, lanes, children + below, root)
        self._own = (1 << children) - 1
        self._root = root
        self._least = least if root else 0
        self._slots = [_Quorum() for _ in range(slots)]

    def gradient(
        self, tag: int, slot: int, child_bit: int, flags: int, exponent: int, lanes: ArrayLike, count: int
    ) -> tuple[SlotOutcome, int]:
        """Takes one packet that counts `count` contributions; gives what `SlotPool.gradient` gives, with the flags of
        the packet that leaves, and the contributions in it. FORWARDED: the packet itself is
        forwarded; SLOT_REUSED: it is returned."""
        if not 0 <= slot < self.pool.slots:
            return SlotOutcome(Verdict.BAD_SLOT), 0
        held = self._slots[slot]
        before = self.pool.tag(slot)
        if tag < before:
            return SlotOutcome(Verdict.SLOT_REUSED if self._root else Verdict.FORWARDED), 0
        if tag > before:  # also of the same chunk, behind a RESET
            held = self._slots[slot] = _Quorum()
        bit = 1 << child_bit
        if held.sealed and not held.bitmap & bit:
            if not self._root:
                return SlotOutcome(Verdict.FORWARDED), 0
            self.pool.mark(slot, flags & Flag.CONGESTION, 0)
            return SlotOutcome(Verdict.LATE, self._sum(slot, Flag.QUORUM | Flag.SEAL)), held.count
        held.asked |= bool(flags & Flag.SEAL)
        if not held.bitmap & bit:
            held.count = held.count + count & COUNT_MAX
        held.bitmap |= bit
        outcome = self.pool.gradient(tag, slot, child_bit, flags & FLAGS, exponent, lanes)
        again = held.sealed
        held.sealed |= held.count >= self._least if held.asked else held.bitmap & self._own == self._own
        if not held.sealed:
            repeated = outcome.verdict in (Verdict.DUPLICATE, Verdict.RESULT_RESENT, Verdict.SUM_RESENT)
            return SlotOutcome(Verdict.DUPLICATE if repeated else Verdict.ACCUMULATED), 0
        verdict = (
            (Verdict.RESULT_RESENT if again else Verdict.RESULT_SENT)
            if self._root
            else (Verdict.SUM_RESENT if again else Verdict.SUM_SENT)
        )
        told = Flag.QUORUM | (Flag.SEAL if held.asked and not self._root else Flag(0))
        return SlotOutcome(verdict, self._sum(slot, told)), held.count

    def _sum(self, slot: int, told: Flag) -> Sum:
        found = self.pool.sum(slot)
        return replace(found, flags=found.flags | told)
