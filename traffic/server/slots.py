# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The slot machine of docs/protocol.md, section 3: what a node of an aggregation tree does with a GRADIENT.

It is the oracle of the tests, for switches, for traffic/engine/slots.c and for the simulator's nodes; it does no I/O.
`SlotPool.gradient` takes one packet and reads like the protocol's table; `SlotPool.gradients` takes a
batch and gives the same answers, in the same order, with numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netfold.traffic.packets.wire import FLAGS, LANE_MAX, LANE_MIN, Flag, Verdict, Words

_WORD = 64  # children in a word of the bitmap


@dataclass(frozen=True)
class Sum:
    """What leaves a node: the fields of the packet that the slot decides. `lanes`: int32 of shape (L,)."""

    flags: Flag
    exponent: int
    lanes: Words


@dataclass(frozen=True)
class Outcome:
    """The verdict on one packet, and what leaves because of it: to all children for `RESULT_SENT`, to the
    child that asked for `RESULT_REPEATED`, upwards for `SUM_SENT` and `SUM_REPEATED`, nothing (None) for the
    others."""

    verdict: Verdict
    packet: Sum | None = None


@dataclass(frozen=True)
class Outcomes:
    """The verdicts on a batch of n packets, shape (n,), and the k packets that leave because of it: `source`
    (k,) is the index of the packet in the batch that made it leave (ascending), then its flags, exponent, and
    lanes (k, L)."""

    verdicts: NDArray[np.uint8]
    source: NDArray[np.intp]
    flags: NDArray[np.uint8]
    exponents: NDArray[np.uint8]
    lanes: Words


@dataclass(frozen=True)
class SlotState:
    """All that a slot holds, as READ shows it. `seen` are the bits of the children that are in."""

    tag: int
    seen: frozenset[int]
    flags: Flag
    exponent: int
    lanes: Words


class SlotPool:
    """The slots of one tree on one node, whose children have the bits 0 ... children - 1 of the bitmap."""

    def __init__(self, slots: int, lanes: int, children: int, root: bool) -> None:
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
        self._repeated = Verdict.RESULT_REPEATED if root else Verdict.SUM_REPEATED

    def gradient(
        self, tag: int, slot: int, child_bit: int, flags: int, exponent: int, lanes: ArrayLike
    ) -> Outcome:
        """Takes one packet of the child with bit `child_bit`. `lanes`: int32 of shape (L,)."""
        if not 0 <= child_bit < self.children:
            raise ValueError(f"child_bit is {child_bit}; this node has the bits 0 to {self.children - 1}")
        if not 0 <= slot < self.slots:
            return Outcome(Verdict.BAD_SLOT)
        held = int(self._tag[slot])
        if tag < held:
            return Outcome(Verdict.STALE_CHUNK)
        word, bit = child_bit // _WORD, np.uint64(1 << child_bit % _WORD)
        repeated = tag == held and bool(self._seen[slot, word] & bit)
        if tag > held:
            self._claim(tag, slot, flags, exponent, np.asarray(lanes, np.int32))
        else:
            self.mark(slot, flags, exponent)
            if not repeated:
                add = add_floats if self._flags[slot] & Flag.FLOATS else add_saturating
                self._sums[slot] = add(self._sums[slot], np.asarray(lanes, np.int32))
        self._seen[slot, word] |= bit
        if not np.array_equal(self._seen[slot], self._full):
            return Outcome(Verdict.DUPLICATE if repeated else Verdict.ABSORBED)
        return Outcome(self._repeated if repeated else self._sent, self.sum(slot))

    def _claim(self, tag: int, slot: int, flags: int, exponent: int, lanes: Words) -> None:
        self._tag[slot] = tag
        self._seen[slot] = 0
        self._flags[slot] = flags & FLAGS
        self._exponent[slot] = exponent
        self._sums[slot] = lanes

    def mark(self, slot: int, flags: int, exponent: int) -> None:
        """What joins the sum in a slot beside lanes."""
        self._flags[slot] |= np.uint8(flags & FLAGS)
        self._exponent[slot] = max(int(self._exponent[slot]), exponent)

    def sum(self, slot: int) -> Sum:
        """What leaves if the sum of this slot goes."""
        lanes, flags = self._sums[slot].copy(), Flag(int(self._flags[slot]))
        if Flag.FLOATS not in flags and bool(at_rail(lanes)):
            flags |= Flag.OVERFLOW
        return Sum(flags, int(self._exponent[slot]), lanes)

    def gradients(
        self,
        tags: NDArray[np.unsignedinteger],
        slots: NDArray[np.integer],
        child_bits: NDArray[np.integer],
        flags: NDArray[np.uint8],
        exponents: NDArray[np.uint8],
        lanes: NDArray[np.int32],
    ) -> Outcomes:
        """Takes n packets as if one after the other. All of shape (n,), `lanes` of (n, L), in any byte
        order."""
        count = len(tags)
        verdicts = np.full(count, Verdict.BAD_SLOT, np.uint8)
        if count and not (child_bits.min() >= 0 and child_bits.max() < self.children):
            raise ValueError(f"a child_bit is outside of this node's bits 0 to {self.children - 1}")
        source: list[NDArray[np.intp]] = []
        left: list[tuple[NDArray[np.uint8], NDArray[np.uint8], Words]] = []
        for index in self._disjoint(slots):
            leaving = self._step(
                verdicts,
                index,
                tags[index],
                slots[index],
                child_bits[index],
                flags[index],
                exponents[index],
                lanes,
            )
            if len(leaving):
                at = slots[leaving]
                sums, held = self._sums[at], self._flags[at]
                cut = at_rail(sums) & (held & np.uint8(Flag.FLOATS) == 0)
                source.append(leaving)
                left.append((held | cut * np.uint8(Flag.OVERFLOW), self._exponent[at], sums))
        return self._collect(verdicts, source, left)

    def _disjoint(self, slots: NDArray[np.integer]) -> list[NDArray[np.intp]]:
        """The batch in rounds: the first packet of every slot, then the second of every slot, ... Packets of
        different slots do not touch each other, so the rounds may be taken at once, each by one step."""
        valid = np.flatnonzero((slots >= 0) & (slots < self.slots))
        order = valid[np.argsort(slots[valid], kind="stable")]
        place = np.arange(len(order))
        new = np.ones(len(order), np.bool_)
        new[1:] = slots[order[1:]] != slots[order[:-1]]
        nth = place - np.maximum.accumulate(np.where(new, place, 0))
        if not nth.any():
            return [order] if len(order) else []
        return [order[nth == n] for n in range(int(nth.max()) + 1)]

    def _step(
        self,
        verdicts: NDArray[np.uint8],
        index: NDArray[np.intp],
        tags: NDArray[np.unsignedinteger],
        slots: NDArray[np.integer],
        child_bits: NDArray[np.integer],
        flags: NDArray[np.uint8],
        exponents: NDArray[np.uint8],
        lanes: NDArray[np.int32],
    ) -> NDArray[np.intp]:
        """One packet for each of some different slots; sets `verdicts[index]`, gives the indices where a sum
        leaves."""
        held = self._tag[slots]
        newer, older = tags > held, tags < held
        words = child_bits.astype(np.intp) // _WORD
        bits = np.left_shift(np.uint64(1), (child_bits % _WORD).astype(np.uint64))
        repeated = ~newer & ~older & ((self._seen[slots, words] & bits) != 0)

        if newer.any():
            at = slots[newer]
            self._tag[at] = tags[newer]
            self._seen[at] = 0
            self._seen[at, words[newer]] = bits[newer]
            self._flags[at] = flags[newer] & FLAGS
            self._exponent[at] = exponents[newer]
            self._sums[at] = lanes[index[newer]]
        same = ~newer & ~older
        if same.any():
            at = slots[same]
            self._flags[at] |= flags[same] & np.uint8(FLAGS)
            self._exponent[at] = np.maximum(self._exponent[at], exponents[same])
        more = same & ~repeated
        if more.any():
            at = slots[more]
            self._seen[at, words[more]] |= bits[more]
            new = lanes[index[more]].astype(np.int32, copy=False)
            floats = (self._flags[at] & np.uint8(Flag.FLOATS) != 0)[:, np.newaxis]
            whole = add_saturating(self._sums[at], new)
            self._sums[at] = (
                np.where(floats, add_floats(self._sums[at], new), whole) if floats.any() else whole
            )

        full = (self._seen[slots] == self._full).all(axis=1)
        verdicts[index] = np.where(
            older,
            np.uint8(Verdict.STALE_CHUNK),
            np.where(
                full,
                np.where(repeated, np.uint8(self._repeated), np.uint8(self._sent)),
                np.where(repeated, np.uint8(Verdict.DUPLICATE), np.uint8(Verdict.ABSORBED)),
            ),
        )
        leaving: NDArray[np.intp] = index[full & ~older]
        return leaving

    def _collect(
        self,
        verdicts: NDArray[np.uint8],
        source: list[NDArray[np.intp]],
        left: list[tuple[NDArray[np.uint8], NDArray[np.uint8], Words]],
    ) -> Outcomes:
        if not source:
            nothing = np.empty(0, np.uint8)
            return Outcomes(
                verdicts, np.empty(0, np.intp), nothing, nothing, np.empty((0, self.lanes), np.int32)
            )
        where = np.concatenate(source)
        order = np.argsort(where)
        flags, exponents, sums = (np.concatenate(column)[order] for column in zip(*left, strict=True))
        return Outcomes(verdicts, where[order], flags, exponents, sums)

    def read(self, slot: int) -> SlotState:
        """What the slot holds; the congestion and overflow marks as stored, without the rails of the sums."""
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


def add_saturating(sums: Words, lanes: Words) -> Words:
    """`sums + lanes`, cut to int32; a sum that stands at a rail stays there (docs/protocol.md, 3.3). Any
    shape."""
    total: Words = sums + lanes
    wrapped = (sums ^ total) & (lanes ^ total)
    if wrapped.min(initial=0) < 0:
        np.copyto(total, np.where(lanes > 0, LANE_MAX, LANE_MIN), where=wrapped < 0)
    if sums.max(initial=0) == LANE_MAX or sums.min(initial=0) == LANE_MIN:
        np.copyto(total, sums, where=(sums == LANE_MAX) | (sums == LANE_MIN))
    return total


def add_floats(sums: Words, lanes: Words) -> Words:
    """The same of lanes that are float32: rounded to nearest, ties to even. There is one NaN."""
    with np.errstate(all="ignore"):
        total = sums.view(np.float32) + np.ascontiguousarray(lanes).view(np.float32)
    total[np.isnan(total)] = np.nan
    words: Words = total.view(np.int32)
    return words


def at_rail(sums: Words) -> NDArray[np.bool_]:
    """Whether some lane (last axis) stands at a rail: then the lanes may not be a sum."""
    rail: NDArray[np.bool_] = (sums.max(axis=-1) == LANE_MAX) | (sums.min(axis=-1) == LANE_MIN)
    return rail
