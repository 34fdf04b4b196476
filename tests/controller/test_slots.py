# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ranges of slots never overlap, are aligned, and come back; epochs decide which free range is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netfold.controller.jobs.records import LAST_EPOCH
from netfold.controller.jobs.slot_allocator import BLOCK, Range, SlotAllocator, SlotsExhaustedError

SIZES = st.sampled_from([16, 32, 64, 128, 256])


@given(st.lists(st.one_of(SIZES, st.integers(0, 15)), max_size=60), st.sampled_from([64, 256, 1000, 4096]))
def test_taking_and_giving_back(operations, slots):
    """An operation is a size to take or the number of a range to give back."""
    held: list[Range] = []
    for operation in operations:
        if operation < BLOCK and held:
            held.pop(operation % len(held))
            continue
        pool, size = SlotAllocator("s", slots, held, {}), max(operation, BLOCK)
        if pool.largest_free() < size:
            with pytest.raises(
                SlotsExhaustedError, match=f"the largest free range has {pool.largest_free()}"
            ):
                pool.take(size)
            continue
        taken = pool.take(size)
        assert taken.base % taken.size == 0
        assert taken.base + taken.size <= slots
        assert not any(taken.base < r.base + r.size and r.base < taken.base + taken.size for r in held)
        held.append(taken)
    used = SlotAllocator("s", slots, held, {})
    assert used.in_use == sum(r.size for r in held)
    free = used.largest_free()
    if free:
        SlotAllocator("s", slots, held, {}).take(free)
    with pytest.raises(SlotsExhaustedError):
        SlotAllocator("s", slots, held, {}).take(max(2 * free, BLOCK))


def test_the_range_with_the_lowest_epoch_is_taken():
    pool = SlotAllocator("s", 64, [], {0: 7, 1: 3, 2: 5})
    assert pool.take(16) == Range(48, 16)
    assert pool.take(16) == Range(16, 16)
    assert pool.take(16) == Range(32, 16)


def test_ranges_are_packed_tightly_among_equals():
    pool = SlotAllocator("s", 128, [Range(64, 16)], {})
    assert pool.take(16) == Range(80, 16)
    assert pool.largest_free() == 64


def test_slots_with_no_epoch_left_are_not_handed_out():
    worn = {0: LAST_EPOCH, 1: LAST_EPOCH}
    with pytest.raises(SlotsExhaustedError):
        SlotAllocator("s", 32, [], worn).take(16)
    assert SlotAllocator("s", 32, [], worn).near_epoch_limit(3000) == [0, 1]
    assert SlotAllocator("s", 32, [Range(0, 16)], worn).near_epoch_limit(3000) == [1]
