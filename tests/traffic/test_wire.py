# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netfold.protocol.wire import (
    Flag,
    Kind,
    Packet,
    WireError,
    make_tag,
    packet,
    split_tag,
    wellformed,
)

GOLDEN = Packet(Kind.RESULT, 0x1234, 0xABC, 0x54321, 0x00FF, 7, (1, -2), Flag.OVERFLOW, 0x9C)
BYTES = bytes.fromhex("11801234 abc54321 00ff0007 9c000002 00000001 fffffffe")


def test_every_field_lies_where_the_protocol_draws_it():
    assert GOLDEN.pack() == BYTES
    assert Packet.parse(BYTES) == GOLDEN


@given(st.integers(0, 4095), st.integers(0, 2**20 - 1))
def test_a_tag_is_epoch_then_round(epoch, round_):
    assert split_tag(make_tag(epoch, round_)) == (epoch, round_)


def test_tags_grow_with_the_epoch_first():
    assert make_tag(2, 0) > make_tag(1, 2**20 - 1)


@pytest.mark.parametrize(
    ("epoch", "round_", "what"), [(4096, 0, "epoch"), (1, 2**20, "round"), (-1, 0, "epoch")]
)
def test_a_tag_out_of_range_is_refused_by_name(epoch, round_, what):
    with pytest.raises(WireError, match=what):
        make_tag(epoch, round_)


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        (BYTES[:15], "15 bytes"),
        (b"\x21" + BYTES[1:], "version is 2"),
        (b"\x14" + BYTES[1:], "kind is 4"),
        (BYTES[:-1], "lanes is 2 in a packet of 23 bytes"),
        (BYTES + b"\0", "lanes is 2 in a packet of 25 bytes"),
        (BYTES[:14] + b"\0\0", "lanes is 0"),
    ],
)
def test_a_malformed_packet_is_refused_by_name(payload, what):
    with pytest.raises(WireError, match=what):
        Packet.parse(payload)


@given(st.binary(min_size=0, max_size=40))
def test_any_bytes_parse_or_are_refused(payload):
    try:
        parsed = Packet.parse(payload)
    except WireError:
        return
    assert Packet.parse(parsed.pack()) == parsed


def test_the_batch_check_agrees_with_the_single_one():
    lanes = 2
    cases = [BYTES, b"\x21" + BYTES[1:], b"\x14" + BYTES[1:], BYTES[:-4], BYTES[:15] + b"\x03" + BYTES[16:]]
    records = np.zeros(len(cases), packet(lanes))
    raw = records.view(np.uint8).reshape(len(cases), -1)
    for row, case in zip(raw, cases, strict=True):
        row[: len(case)] = np.frombuffer(case, np.uint8)
    sizes = np.array([len(c) for c in cases])
    assert wellformed(records, sizes, lanes).tolist() == [True, False, False, False, False]
