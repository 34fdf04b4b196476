# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Big headers are cleared and copied only where they were touched: a frame reads of one what this frame left there,
else 0, whatever frames came before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from running import program, running
from softswitch.state.entities import Replica
from softswitch.state.switch import Switch

HAS, WRITE, REMOVE, COPIES, ADD, WRITE_IN_COPY = (1 << bit for bit in range(6))
LAST = 0xAB
BIG = bytes(range(1, 130)) + bytes([LAST])


@pytest.fixture
def switch(cache_dir: Path) -> Iterator[Switch]:
    with running(program("big"), cache_dir) as (pipeline, running_switch):
        pipeline.multicast_insert(1, [Replica(2, rid) for rid in (1, 2, 3)])
        yield running_switch


def read(switch: Switch, op: int) -> list[tuple[int, int, int, bytes]]:
    """For each frame that leaves: what ingress and egress read in the header, the replica's number, the header."""
    sent = switch.inject(1, bytes([op, 0, 0, 0]) + (BIG if op & HAS else b""), 0)
    return [(frame[1], frame[2], frame[3], frame[4:]) for _, frame in sent]


def test_nothing_of_an_earlier_frame_is_read(switch: Switch) -> None:
    for before in (HAS, HAS | WRITE, WRITE, HAS | REMOVE, ADD, HAS | COPIES, WRITE | COPIES | WRITE_IN_COPY):
        for _ in range(3):  # packets' memory is used again
            read(switch, before)
        assert read(switch, 0) == [(0, 0, 0, b"")], before
        assert read(switch, ADD) == [(0, 0, 0, bytes(len(BIG)))], before
        assert read(switch, COPIES) == [(0, 0, rid, b"") for rid in (1, 2, 3)], before


def test_what_this_frame_left_is_read(switch: Switch) -> None:
    assert read(switch, HAS) == [(LAST, LAST, 0, BIG)]
    assert read(switch, HAS | REMOVE) == [(LAST, LAST, 0, b"")]
    assert read(switch, WRITE) == [(7, 7, 0, b"")]
    assert read(switch, HAS | WRITE) == [(7, 7, 0, BIG[:-1] + b"\x07")]


def test_each_copy_has_the_header_for_itself(switch: Switch) -> None:
    assert read(switch, HAS | COPIES) == [(LAST, LAST, rid, BIG) for rid in (1, 2, 3)]
    changed = BIG[:-1] + b"\x09"
    first, *others = read(switch, HAS | COPIES | WRITE_IN_COPY)
    assert first == (LAST, 9, 1, changed)
    assert others == [(LAST, LAST, rid, BIG) for rid in (2, 3)]
    assert read(switch, COPIES | WRITE_IN_COPY) == [(0, 9, 1, b""), (0, 0, 2, b""), (0, 0, 3, b"")]
