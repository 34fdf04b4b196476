# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Machines with one rule broken. The checker has to find each of them, or it proves nothing."""

from __future__ import annotations

from tests.model.machine import Life, Machine, Reply, Slot, Step


class NoBitmap(Machine):
    """Counts packets where it should note their senders."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        if tag < slot.tag:
            return slot, Step.STALE
        if tag > slot.tag:
            after = Slot(tag, 1, marks, value)
        else:
            after = Slot(tag, (slot.seen << 1 | 1) & full, slot.marks | marks, slot.total + value)
        return after, Step.COMPLETED if after.seen == full else Step.ACCUMULATED


class TagIgnored(Machine):
    """Takes whatever chunk comes for that of the slot."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        return super().step(slot, slot.tag or tag, bit, marks, value, full)


class OlderClaims(Machine):
    """Claims the slot for any other chunk, also for an older one."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        held = slot if tag >= slot.tag else slot._replace(tag=0)
        return super().step(held, tag, bit, marks, value, full)


class TagWithoutEpoch(Machine):
    def tag(self, epoch: int, round_: int) -> int:
        return round_ + 1


class AdmissionIgnoresEpoch(Machine):
    def admits(self, here: Life, packet: Life) -> bool:
        return packet.tree == here.tree


class AdmissionIgnoresTree(Machine):
    def admits(self, here: Life, packet: Life) -> bool:
        return packet.epoch == here.epoch


class WorkerIgnoresEpoch(Machine):
    def takes(self, here: Life, packet: Life) -> bool:
        return packet.tree == here.tree


class ClaimAdds(Machine):
    """Notes tag and child of a claim, but adds to what lay in the slot."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        left_behind = slot.total if tag > slot.tag else 0
        return super().step(slot, tag, bit, marks, value + left_behind, full)


class ClaimKeepsMarks(Machine):
    """Does not overwrite the sticky flags of the chunk before."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        left_behind = slot.marks if tag > slot.tag else 0
        return super().step(slot, tag, bit, marks | left_behind, value, full)


class InnerAnswers(Machine):
    """An inner node answers a repetition from its own slot, which holds a part of the sum."""

    def reply(self, root: bool, step: Step) -> Reply:
        return Reply.RESULT_TO_CHILD if step is Step.RESENT else super().reply(root, step)


class InnerForgets(Machine):
    """An inner node sends its sum only once."""

    def reply(self, root: bool, step: Step) -> Reply:
        return Reply.NOTHING if step is Step.RESENT and not root else super().reply(root, step)


class RootForgets(Machine):
    """A root sends the result only once."""

    def reply(self, root: bool, step: Step) -> Reply:
        return Reply.NOTHING if step is Step.RESENT and root else super().reply(root, step)


class PartialResult(Machine):
    """Answers a repetition although others are awaited."""

    def reply(self, root: bool, step: Step) -> Reply:
        return super().reply(root, Step.RESENT if step is Step.DUPLICATE else step)
