# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A tree with a quorum, packet by packet (docs/reference/protocol.md, section 3.7). Each frame that leaves is
the oracle's, too; random networks with quorums are in test_stateful.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netfold.protocol.wire import Flag, Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.conftest import V1MODEL_TARGETS, Fresh
from tests.dataplane.fixtures import SETTINGS, TREE, UPLINK, inner, root, sent
from tests.dataplane.frames import NETFOLD_AT
from tests.dataplane.node import Child

Q, S = int(Flag.QUORUM), int(Flag.SEAL)


@pytest.fixture
def small(target: str, fresh: Fresh) -> Bench:
    if target not in V1MODEL_TARGETS:
        pytest.skip("a chip has no quorums")
    bench = fresh(target, 32)
    bench.install(*SETTINGS)
    return bench


def told(frame: bytes) -> Packet:
    return Packet.parse(frame[NETFOLD_AT : NETFOLD_AT + 16 + 4 * 32])


def of(worker: int, value: int, *, seal: bool = False, **fields: int) -> bytes:
    return sent(worker, value, flags=Q | (S if seal else 0), reserved=fields.pop("count", 1), **fields)


def test_a_sum_goes_without_one_when_a_deadline_is_over_and_the_late_one_is_told(small: Bench):
    small.install(replace(root(3), quorum=2))
    assert small.verdict_of(1, of(1, 5)) is Verdict.ACCUMULATED
    assert small.verdict_of(2, of(2, 7)) is Verdict.ACCUMULATED
    results = small.send(1, of(1, 5, seal=True))
    assert [port for port, _ in results] == [1, 2, 3]
    assert {(told(frame).lane[0], told(frame).count) for _, frame in results} == {(12, 2)}
    ((port, late),) = small.send(3, of(3, 100, exponent=255))
    assert (port, told(late).lane[0], told(late).count) == (3, 12, 2)
    assert told(late).exponent == told(results[0][1]).exponent
    assert told(late).flags == Flag.QUORUM | Flag.SEAL
    assert small.verdict_of(3, of(3, 100)) is Verdict.LATE
    assert small.verdict_of(2, of(2, 7, seal=True)) is Verdict.RESULT_RESENT


def test_one_deadline_is_not_enough_below_the_quorum(small: Bench):
    small.install(replace(root(3), quorum=2))
    assert small.verdict_of(1, of(1, 5, seal=True)) is Verdict.ACCUMULATED
    assert small.verdict_of(1, of(1, 5, seal=True)) is Verdict.DUPLICATE
    assert small.verdict_of(2, of(2, 7, count=0)) is Verdict.ACCUMULATED  # it had nothing that fits
    assert small.verdict_of(3, of(3, 9)) is Verdict.RESULT_SENT


def test_without_a_deadline_all_are_awaited(small: Bench):
    small.install(replace(root(3), quorum=1))
    assert small.verdict_of(1, of(1, 5)) is Verdict.ACCUMULATED
    assert small.verdict_of(2, of(2, 5)) is Verdict.ACCUMULATED
    assert small.verdict_of(3, of(3, 5)) is Verdict.RESULT_SENT


def test_a_chunk_whose_slot_has_moved_on_is_answered(small: Bench):
    small.install(replace(root(2), quorum=1))
    assert small.verdict_of(1, of(1, 5, round=1, seal=True)) is Verdict.RESULT_SENT
    ((port, answer),) = small.send(2, of(2, 5, round=0))
    assert (port, told(answer).flags, told(answer).round) == (2, Flag.QUORUM | Flag.SLOT_REUSED, 0)
    assert small.verdict_of(2, of(2, 5, round=0)) is Verdict.SLOT_REUSED


def test_an_inner_node_seals_at_once_and_passes_on_what_is_late(small: Bench):
    small.install(replace(inner(3), quorum=0))
    assert small.verdict_of(1, of(1, 5)) is Verdict.ACCUMULATED
    ((port, up),) = small.send(2, of(2, 7, seal=True))
    assert (port, told(up).lane[0], told(up).count, told(up).child) == (UPLINK, 12, 2, 40)
    assert told(up).flags == Flag.QUORUM | Flag.SEAL
    ((port, passed),) = small.send(3, of(3, 9))
    assert (port, told(passed).lane[0], told(passed).count, told(passed).child) == (UPLINK, 9, 1, 3)
    assert small.verdict_of(3, of(3, 9)) is Verdict.FORWARDED
    assert small.verdict_of(1, of(1, 5)) is Verdict.SUM_RESENT
    assert small.verdict_of(1, of(1, 5, round=1)) is Verdict.ACCUMULATED
    assert small.verdict_of(2, of(2, 7)) is Verdict.FORWARDED  # only the root knows whether it can be had


def test_a_root_adds_what_an_inner_node_passed_on(small: Bench):
    small.install(replace(root(2), quorum=3, below=(Child(1, 11), Child(1, 12))))
    assert small.verdict_of(1, of(1, 5, count=2, seal=True)) is Verdict.ACCUMULATED
    results = small.send(1, of(1, 7, child=12))
    assert {(told(frame).lane[0], told(frame).count) for _, frame in results} == {(12, 3)}
    assert small.verdict_of(2, of(2, 1)) is Verdict.LATE


def test_packets_of_other_trees_that_say_so_are_as_if_they_did_not(small: Bench):
    small.install(root(2))
    assert small.verdict_of(1, of(1, 5, seal=True)) is Verdict.ACCUMULATED
    results = small.send(2, of(2, 7, seal=True))
    assert {(told(frame).lane[0], told(frame).flags, told(frame).count) for _, frame in results} == {
        (12, Flag(0), 0)
    }


@pytest.mark.parametrize("lanes", [64, 256])
def test_it_is_the_same_with_more_lanes(lanes: int, fresh: Fresh):
    bench = fresh("softswitch", lanes)
    bench.install(*SETTINGS, replace(root(2), quorum=1))
    mine, late = list(range(lanes)), [3] * lanes
    common = {"flags": Q | S, "reserved": 1, "tree": TREE}
    assert len(bench.send(1, sent(1, mine, **common))) == 2
    ((_, answer),) = bench.send(2, sent(2, late, **common))
    found = Packet.parse(answer[NETFOLD_AT : NETFOLD_AT + 16 + 4 * lanes])
    assert (list(found.lane), found.count) == (mine, 1)
