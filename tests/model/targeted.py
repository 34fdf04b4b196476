# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Targeted chunks, docs/reference/protocol.md, sections 2.1 and 3.8: contributions without lanes (short), and copies of
results that are cut for workers that want no lanes.

A worker sends a chunk whole or short, always in one form. A node takes a short one for zeros, and notes in the sticky
mark DATA whether any was whole. A sum with DATA leaves whole, one without leaves short. Each switch cuts the copies
of a result by its ports. The root sends a result again whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netfold.protocol.constants import TARGET_NONE
from netfold.protocol.target import LaneTarget
from tests.model.machine import Machine, Reply, Slot, Step
from tests.model.network import Message, System, Violation

DATA = 4


@dataclass(frozen=True)
class Chunk:
    """`owner` alone wants lanes or, with `all_but`, all others do. A chunk of no owner goes to all."""

    owner: int | None = None
    all_but: bool = False

    def is_whole(self, worker: int) -> bool:
        """Returns whether this worker's contribution has lanes. The owner of a scatter adds its own to the result."""
        return self.owner is None or (self.owner != TARGET_NONE and (worker == self.owner) == self.all_but)

    def wants(self, worker: int) -> bool:
        return self.owner is None or LaneTarget(self.owner, self.all_but).wants(worker)


TO_ALL, EMPTY_CHUNK = Chunk(), Chunk(TARGET_NONE)


def scatter(owner: int) -> Chunk:
    return Chunk(owner)


def gather(owner: int) -> Chunk:
    return Chunk(owner, all_but=True)


class TargetedMachine(Machine):
    """The rules of targeted chunks. A mutant overrides one of them."""

    def added(self, slot: Slot, tag: int, message: Message) -> int:
        """Returns what a node adds to the lanes."""
        return message.value

    def sent(self, slot: Slot, message: Message) -> int:
        """Returns the lanes of the sum that a packet completes or requests again."""
        return slot.total

    def sum_is_short(self, slot: Slot, message: Message) -> bool:
        return not slot.marks & DATA

    def is_cut(self, chunk: Chunk, below: Sequence[int]) -> bool:
        """Returns whether the copy for a port is cut that leads to the workers `below`."""
        return not any(map(chunk.wants, below))

    def resent_is_cut(self, chunk: Chunk, below: Sequence[int]) -> bool:
        return False

    def takes_result(self, wants: bool, result: Message) -> bool:
        """A worker that wants lanes ignores a result that lacks them."""
        return not (wants and result.is_short and result.marks & DATA)

    def forms(self, is_whole: bool) -> tuple[bool, ...]:
        """Returns the forms in which a worker sends a chunk (True: whole)."""
        return (is_whole,)


RULES = TargetedMachine()


@dataclass(frozen=True)
class Targeted(System):
    """`kinds`: chunk c is kinds[c mod their number]. `at_once`: workers get the lanes that they want with the first
    result (T1)."""

    machine: TargetedMachine = RULES
    kinds: tuple[Chunk, ...] = (TO_ALL,)
    at_once: bool = False

    def kind(self, chunk: int) -> Chunk:
        return self.kinds[chunk % len(self.kinds)]

    def _value(self, worker: int, life: int, chunk: int) -> int:
        return super()._value(worker, life, chunk) if self.kind(chunk).is_whole(worker) else 0

    def _marks(self, worker: int, chunk: int) -> int:
        return super()._marks(worker, chunk) | (DATA if self.kind(chunk).is_whole(worker) else 0)

    def _contributions(self, worker: int, life: int, chunk: int) -> Iterator[Message]:
        for message in super()._contributions(worker, life, chunk):
            for is_whole in self.machine.forms(self.kind(chunk).is_whole(worker)):
                if is_whole:
                    yield message
                else:
                    yield message._replace(marks=message.marks & ~DATA, value=0, is_short=True)

    def _step(self, slot: Slot, tag: int, message: Message, full: int) -> tuple[Slot, Step]:
        value = self.machine.added(slot, tag, message)
        return self.machine.step(slot, tag, message.bit, message.marks, value, full)

    def _replies(self, node: int, message: Message, slot: Slot, reply: Reply) -> int:
        is_short = self.machine.sum_is_short(slot, message)
        total = 0 if is_short else self.machine.sent(slot, message)
        left = message._replace(marks=slot.marks, value=total, is_short=is_short)
        if reply is Reply.SUM_UP:
            return self._messages.bit(left._replace(to=self.tree.parents[node], bit=self._bit[node]))
        to_all, chunk, bits = reply is Reply.RESULT_TO_ALL, self.kind(message.chunk), 0
        asking = self._children[node][message.bit.bit_length() - 1]
        cuts = self.machine.is_cut if to_all else self.machine.resent_is_cut
        for child in self._children[node] if to_all else [asking]:
            bits |= self._down(child, _cut(left, cuts(chunk, self.tree.workers_below(child))))
        for _, result in self._messages.within(bits if self.at_once and to_all else 0):
            if chunk.wants(result.to) and result.is_short and slot.marks & DATA:
                raise Violation("T1", f"worker {result.to} wants lanes, and its copy is cut: {result}")
        return bits

    def _down(self, part: int, result: Message) -> int:
        """A result on the link to a part, and what becomes of it below."""
        if part >= self.tree.nodes:
            return self._messages.bit(result._replace(to=part - self.tree.nodes, bit=0))
        bits, chunk = 0, self.kind(result.chunk)
        for child in self._children[part]:
            bits |= self._down(
                child, _cut(result, self.machine.is_cut(chunk, self.tree.workers_below(child)))
            )
        return bits

    def _takes(self, result: Message) -> bool:
        return self.machine.takes_result(self.kind(result.chunk).wants(result.to), result)

    def _is_sum(self, result: Message, total: int, marks: int) -> bool:
        if result.is_short and not self.kind(result.chunk).wants(result.to):
            result = result._replace(value=total)
        return super()._is_sum(result, total, marks)


def _cut(result: Message, is_cut: bool) -> Message:
    return result._replace(value=0, is_short=True) if is_cut else result
