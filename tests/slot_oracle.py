# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The slot machine of docs/reference/protocol.md, section 3: what a node of an aggregation tree does with one GRADIENT.

The oracle of the tests for switches, for the engine's slot pool and for the simulator's nodes. It reads like the
protocol's table and does no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netfold.protocol.wire import FLAGS, LANE_MAX, LANE_MIN, Flag, LaneArray, Verdict

_WORD = 64  # children in a word of the bitmap


@dataclass(frozen=True)
class Sum:
    """A sum that leaves a node: the fields of the packet that the slot decides. `lanes`: int32 of shape (L,)."""

    flags: Flag
    exponent: int
    lanes: LaneArray


@dataclass(frozen=True)
class SlotOutcome:
    """The verdict on one packet, and what leaves because of it: to all children for `RESULT_SENT`, to the
    child that asked for `RESULT_REPEATED`, upwards for `SUM_SENT` and `SUM_REPEATED`, nothing (None) for the
    others."""

    verdict: Verdict
    packet: Sum | None = None


@dataclass(frozen=True)
class SlotState:
    """All that a slot holds, as READ shows it. `seen` are the bits of the children that are in."""

    tag: int
    seen: frozenset[int]
    flags: Flag
    exponent: int
    lanes: LaneArray


class SlotPool:
    """The slots of one tree on one node, whose children have the bits 0 ... children - 1 of the bitmap. `wraps`: a lane
    that leaves int32 wraps around and marks the sum; else it is saturated. `targets`: it takes short contributions."""

    def __init__(
        self, slots: int, lanes: int, children: int, root: bool, *, wraps: bool = False, targets: bool = False
    ) -> None:
        if slots < 1 or slots & (slots - 1):
            raise ValueError(f"slots is {slots}; it must be a power of two")
        if lanes < 1:
            raise ValueError(f"lanes is {lanes}; it must be at least 1")
        if children < 1:
            raise ValueError(f"children is {children}; it must be at least 1")
        self.slots = slots
        self.lanes = lanes
        self.children = children
        self.root = root
        self.wraps = wraps
        self._sticky = FLAGS | Flag.DATA if targets else FLAGS
        words = -(-children // _WORD)
        self._full = np.full(words, 2**_WORD - 1, np.uint64)
        if children % _WORD:
            self._full[-1] = 2 ** (children % _WORD) - 1
        self._tag = np.zeros(slots, np.uint32)
        self._seen = np.zeros((slots, words), np.uint64)
        self._flags = np.zeros(slots, np.uint8)
        self._exponent = np.zeros(slots, np.uint8)
        self._sums = np.zeros((slots, lanes), np.int32)
        self._sent = Verdict.RESULT_SENT if root else Verdict.SUM_SENT
        self._repeated = Verdict.RESULT_RESENT if root else Verdict.SUM_RESENT

    def gradient(
        self, tag: int, slot: int, child_bit: int, flags: int, exponent: int, lanes: ArrayLike | None
    ) -> SlotOutcome:
        """Takes one packet of the child with bit `child_bit`. `lanes`: int32 of shape (L,); None: the packet is short.
        What leaves because of a targeted packet is whole if its flags have DATA."""
        if lanes is None:
            lanes = np.zeros(self.lanes, np.int32)
        if not 0 <= child_bit < self.children:
            raise ValueError(f"child_bit is {child_bit}; this node has the bits 0 to {self.children - 1}")
        if not 0 <= slot < self.slots:
            return SlotOutcome(Verdict.BAD_SLOT)
        held = int(self._tag[slot])
        if tag < held:
            return SlotOutcome(Verdict.STALE_CHUNK)
        word, bit = child_bit // _WORD, np.uint64(1 << child_bit % _WORD)
        repeated = tag == held and bool(self._seen[slot, word] & bit)
        if tag > held:
            self._claim(tag, slot, flags, exponent, np.asarray(lanes, np.int32))
        else:
            self.mark(slot, flags, exponent)
            if not repeated:
                self._sums[slot] = self._added(slot, np.asarray(lanes, np.int32))
        self._seen[slot, word] |= bit
        if not (self._seen[slot] == self._full).all():
            return SlotOutcome(Verdict.DUPLICATE if repeated else Verdict.ACCUMULATED)
        return SlotOutcome(self._repeated if repeated else self._sent, self.sum(slot))

    def _added(self, slot: int, lanes: LaneArray) -> LaneArray:
        held = self._sums[slot]
        if self._flags[slot] & Flag.FLOATS:
            return add_floats(held, lanes)
        if not self.wraps:
            return add_saturating(held, lanes)
        total: LaneArray = held + lanes
        if bool((total != held.astype(np.int64) + lanes).any()):
            self._flags[slot] |= np.uint8(Flag.OVERFLOW)
        return total

    def _claim(self, tag: int, slot: int, flags: int, exponent: int, lanes: LaneArray) -> None:
        self._tag[slot] = tag
        self._seen[slot] = 0
        self._flags[slot] = flags & self._sticky
        self._exponent[slot] = exponent
        self._sums[slot] = lanes

    def tag(self, slot: int) -> int:
        """Returns the tag of the chunk that the slot holds; 0: none, or it was reset."""
        return int(self._tag[slot])

    def mark(self, slot: int, flags: int, exponent: int) -> None:
        """Adds flags and an exponent to the sum in a slot."""
        self._flags[slot] |= np.uint8(flags & self._sticky)
        self._exponent[slot] = max(int(self._exponent[slot]), exponent)

    def sum(self, slot: int) -> Sum:
        """Returns the packet's fields if the sum of this slot goes."""
        lanes, flags = self._sums[slot].copy(), Flag(int(self._flags[slot]))
        if not self.wraps and Flag.FLOATS not in flags and bool(is_saturated(lanes)):
            flags |= Flag.OVERFLOW
        return Sum(flags, int(self._exponent[slot]), lanes)

    def read(self, slot: int) -> SlotState:
        """Returns the contents of the slot; the congestion and overflow marks as stored, without the rails of the
        sums."""
        seen = frozenset(
            bit for bit in range(self.children) if int(self._seen[slot, bit // _WORD]) >> bit % _WORD & 1
        )
        return SlotState(
            int(self._tag[slot]),
            seen,
            Flag(int(self._flags[slot])),
            int(self._exponent[slot]),
            self._sums[slot].copy(),
        )

    def reset(self, slot: int) -> SlotState:
        """RESET: the state before, with the tag set to 0, so that any packet claims the slot."""
        state = self.read(slot)
        self._tag[slot] = 0
        return state


def add_saturating(sums: LaneArray, lanes: LaneArray) -> LaneArray:
    """`sums + lanes`, cut to int32; a sum that stands at a rail stays there (docs/reference/protocol.md, 3.3). Any
    shape."""
    total: LaneArray = sums + lanes
    wrapped = (sums ^ total) & (lanes ^ total)
    if wrapped.min(initial=0) < 0:
        np.copyto(total, np.where(lanes > 0, LANE_MAX, LANE_MIN), where=wrapped < 0)
    if sums.max(initial=0) == LANE_MAX or sums.min(initial=0) == LANE_MIN:
        np.copyto(total, sums, where=(sums == LANE_MAX) | (sums == LANE_MIN))
    return total


def add_floats(sums: LaneArray, lanes: LaneArray) -> LaneArray:
    """The same of lanes that are float32: rounded to nearest, ties to even. There is one NaN."""
    with np.errstate(all="ignore"):
        total = sums.view(np.float32) + np.ascontiguousarray(lanes).view(np.float32)
    total[np.isnan(total)] = np.nan
    words: LaneArray = total.view(np.int32)
    return words


def is_saturated(sums: LaneArray) -> NDArray[np.bool_]:
    """Whether a lane (last axis) is saturated: then the lanes may not be a sum."""
    saturated: NDArray[np.bool_] = (sums.max(axis=-1) == LANE_MAX) | (sums.min(axis=-1) == LANE_MIN)
    return saturated
