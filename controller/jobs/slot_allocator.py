# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Allocates slots of a switch to trees as aligned ranges of a power of two. It is a buddy system without free lists:
the ranges in use follow from the jobs, so none can leak. It also holds the epochs that each block of slots has seen.

A slot keeps the tag of its last user. The epoch of the next user has to be greater, or its packets would look stale. So
the epoch of an installation is one more than the greatest that any block of its ranges has seen since the registers of
the switch were last empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netfold.controller.jobs.records import LAST_EPOCH

BLOCK = 16
"""Slots that share one epoch mark; the size of the smallest range."""


class SlotsExhaustedError(Exception):
    """There is no free range of the wanted size; `free` is the size of the largest one."""

    def __init__(self, switch: str, wanted: int, free: int) -> None:
        self.switch, self.wanted, self.free = switch, wanted, free
        super().__init__(
            f"switch {switch} has no {wanted} slots in one range; the largest free range has {free}"
        )


@dataclass(frozen=True)
class Range:
    """The slots from base to base + size - 1; base is a multiple of size, size a power of two and at least BLOCK."""

    base: int
    size: int

    @property
    def blocks(self) -> range:
        return range(self.base // BLOCK, (self.base + self.size) // BLOCK)


class SlotAllocator:
    """The slots of one switch. `epochs[block]` is the greatest epoch that a block has seen."""

    def __init__(self, switch: str, slots: int, taken: Iterable[Range], epochs: Mapping[int, int]) -> None:
        self.switch = switch
        self.slots = slots
        self._epochs = epochs
        self._taken: set[int] = set()
        for held in taken:
            self._taken.update(held.blocks)

    @property
    def in_use(self) -> int:
        return len(self._taken) * BLOCK

    def take(self, size: int) -> Range:
        """A range of `size` slots whose epochs are the lowest, tightly packed among equals. Raises
        SlotsExhaustedError."""
        size = max(size, BLOCK)
        free = list(self._free(size))
        if not free:
            raise SlotsExhaustedError(self.switch, size, self.largest_free())
        best = min(free, key=lambda r: (self.epoch(r), self._waste(r), r.base))
        self._taken.update(best.blocks)
        return best

    def epoch(self, chosen: Range) -> int:
        """The greatest epoch that the range has seen."""
        return max(self._epochs.get(b, 0) for b in chosen.blocks)

    def near_epoch_limit(self, epoch: int) -> list[int]:
        """Free blocks that have seen an epoch of at least `epoch`."""
        return sorted(b for b, seen in self._epochs.items() if seen >= epoch and b not in self._taken)

    def is_free(self, block: int) -> bool:
        return block not in self._taken

    def largest_free(self) -> int:
        """The size of the largest free range, 0 if there is none."""
        size = 1 << (self.slots.bit_length() - 1)
        while size >= BLOCK and next(iter(self._free(size)), None) is None:
            size //= 2
        return size if size >= BLOCK else 0

    def _free(self, size: int) -> Iterable[Range]:
        for base in range(0, self.slots - size + 1, size):
            candidate = Range(base, size)
            if not self._taken.intersection(candidate.blocks) and self.epoch(candidate) < LAST_EPOCH:
                yield candidate

    def _waste(self, candidate: Range) -> int:
        """Free slots in the buddy of the candidate: taking it would break this larger free range."""
        buddy = Range(candidate.base ^ candidate.size, candidate.size)
        return sum(b not in self._taken for b in buddy.blocks)
