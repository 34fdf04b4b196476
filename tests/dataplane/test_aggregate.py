# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A chunk from its first contribution to the result, and every packet that comes twice or too late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netfold.protocol.wire import Kind, Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import EPOCH, SETTINGS, SLOTS, TREE, UPLINK, inner, passing, root, sent
from tests.dataplane.frames import LANES, Ip, Netfold, gradient
from tests.dataplane.node import Child, TreeAt


def payload(frame: bytes) -> Packet:
    return Packet.parse(frame[42:])


def test_a_root_sends_the_result_to_all_workers(bench: Bench):
    bench.install(*SETTINGS, root(3))
    assert bench.send(1, sent(1, list(range(LANES)))) == []
    assert bench.send(2, sent(2, list(range(0, 10 * LANES, 10)))) == []
    results = bench.send(3, sent(3, -5))
    assert [port for port, _ in results] == [1, 2, 3]
    for port, frame in results:
        result = payload(frame)
        assert result.kind is Kind.RESULT
        assert result.lane == tuple(11 * lane - 5 for lane in range(LANES))
        assert frame[:6] == bytes([2, 0, 0, 0, 0, port])  # to the host's own address,
        assert frame[26:34] == bytes([10, 0, 0, 100, 10, 0, 0, port])  # from the root's
    bench.check_counters()


def test_an_inner_node_sends_one_packet_up_as_its_own_child(bench: Bench):
    bench.install(*SETTINGS, inner(2, child=40))
    assert bench.send(1, sent(1, 1)) == []
    ((port, frame),) = bench.send(2, sent(2, 2))
    up = payload(frame)
    assert (port, up.kind, up.child, set(up.lane)) == (UPLINK, Kind.GRADIENT, 40, {3})
    bench.check_counters()


def test_results_from_the_root_go_down_to_the_workers_and_touch_no_slot(bench: Bench):
    bench.install(*SETTINGS, inner(2))
    bench.send(1, sent(1, 1))
    result = sent(1, 9, kind=Kind.RESULT)
    assert [port for port, _ in bench.send(UPLINK, result)] == [1, 2]
    ((_, up),) = bench.send(2, sent(2, 2))
    assert set(payload(up).lane) == {3}
    bench.check_counters()


def test_a_switch_on_the_way_passes_packets_on_unchanged(bench: Bench):
    bench.install(*SETTINGS, passing(1, 2))
    frame = sent(1, 5, flags=0xFF, exponent=9, reserved=0xAA)
    ((port, out),) = bench.send(1, frame)
    assert (port, out[22]) == (UPLINK, frame[22] - 1)
    assert (out[14:22], out[26:]) == (
        frame[14:22],
        frame[26:],
    )  # addresses of the link, time to live, nothing else
    assert bench.verdict_of(1, frame) is Verdict.FORWARDED
    assert bench.verdict_of(UPLINK, sent(1, kind=Kind.RESULT)) is Verdict.MULTICAST


@pytest.mark.parametrize("kind", [Kind.GRADIENT, Kind.RESULT])
def test_what_a_switch_only_sends_on_dies_in_the_end(bench: Bench, kind: Kind):
    """Wrong entries that send packets round in a circle, or multiply them, are no storm."""
    port = 1 if kind is Kind.GRADIENT else UPLINK
    passed = Verdict.FORWARDED if kind is Kind.GRADIENT else Verdict.MULTICAST
    bench.install(*SETTINGS, passing(1, 2))
    for ttl in (0, 1):
        assert bench.verdict_of(port, sent(1, kind=kind, ttl=ttl)) is Verdict.EXPIRED
    for ttl in (2, 3, 254, 255):
        assert bench.verdict_of(port, sent(1, kind=kind, ttl=ttl)) is passed
        assert {out[22] for _, out in bench.send(port, sent(1, kind=kind, ttl=ttl))} == {ttl - 1}
    bench.check_counters()


@pytest.mark.parametrize("node", [root(1), inner(1)], ids=["root", "inner"])
def test_what_a_node_makes_lives_long_and_has_nothing_of_the_last_contributor(bench: Bench, node: TreeAt):
    bench.install(*SETTINGS, node)
    for round_, ttl in enumerate((0, 1, 255)):
        for _, out in bench.send(1, sent(1, round=round_, ttl=ttl, reserved=0xAA, flags=0x3D)):
            assert (out[22], out[43], out[55]) == (64, 0, 0)
    bench.check_counters()


@pytest.mark.parametrize(
    ("node", "repeated"), [(root(2), Verdict.RESULT_RESENT), (inner(2), Verdict.SUM_RESENT)], ids=["root", "inner"]
)  # fmt: skip
def test_a_child_that_asks_again_gets_the_same_sum_again(bench: Bench, node: TreeAt, repeated: Verdict):
    bench.install(*SETTINGS, node)
    assert bench.verdict_of(1, sent(1, 1)) is Verdict.ACCUMULATED
    assert bench.verdict_of(1, sent(1, 1)) is Verdict.DUPLICATE
    first = bench.send(2, sent(2, 2))
    for worker in (1, 2, 1):
        assert bench.verdict_of(worker, sent(worker, 77)) is repeated
        ((port, frame),) = bench.send(worker, sent(worker, -77))
        assert port == (UPLINK if node.up else worker)
        assert payload(frame).lane == payload(first[0][1]).lane
    bench.check_counters()


def test_a_newer_chunk_claims_the_slot_and_the_older_one_is_stale(bench: Bench):
    bench.install(*SETTINGS, root(2))
    bench.send(1, sent(1, 1000, round=0, exponent=200, flags=0xC0))
    assert bench.verdict_of(2, sent(2, 1, round=1, exponent=3)) is Verdict.ACCUMULATED
    assert bench.verdict_of(2, sent(2, 1000, round=0)) is Verdict.STALE_CHUNK
    (_, frame), _ = bench.send(1, sent(1, 2, round=1))
    result = payload(frame)
    assert (set(result.lane), result.exponent, result.flags) == ({3}, 3, 0)
    bench.check_counters()


def test_rounds_are_compared_as_unsigned_numbers(bench: Bench):
    bench.install(*SETTINGS, root(2).at(4095))
    for round_ in (0, 1, 0x7FFFF, 0x80000, 0xFFFFF):
        assert bench.verdict_of(1, sent(1, round=round_, epoch=4095)) is Verdict.ACCUMULATED
    assert bench.verdict_of(1, sent(1, round=0x7FFFF, epoch=4095)) is Verdict.STALE_CHUNK


def test_chunks_in_different_slots_do_not_meet(bench: Bench):
    bench.install(*SETTINGS, root(2))
    for slot in range(SLOTS):
        bench.send(1, sent(1, slot, slot=slot))
    for slot in reversed(range(SLOTS)):
        results = bench.send(2, sent(2, 10, slot=slot))
        assert {lane for _, frame in results for lane in payload(frame).lane} == {10 + slot}
    bench.check_counters()


def test_a_tree_with_one_child_completes_with_every_packet(bench: Bench):
    bench.install(*SETTINGS, root(1))
    assert bench.verdict_of(1, sent(1, 4)) is Verdict.RESULT_SENT
    assert bench.verdict_of(1, sent(1, 5)) is Verdict.RESULT_RESENT
    assert bench.verdict_of(1, sent(1, 6, round=1)) is Verdict.RESULT_SENT
    assert bench.verdict_of(1, sent(1, 6)) is Verdict.STALE_CHUNK


def test_thirty_two_children_fill_the_bitmap(bench: Bench):
    children = tuple(Child(1 + number % 3, 100 + number) for number in range(32))
    bench.install(*SETTINGS, TreeAt(TREE, EPOCH, SLOTS, root=True, children=children, down=(1, 2, 3)))
    for child in children[::-1]:
        results = bench.send(child.port, sent(child.number, child.number))
    assert set(payload(results[0][1]).lane) == {sum(child.number for child in children)}
    bench.check_counters()


def test_a_raised_epoch_reuses_the_slots_as_an_aborted_job_left_them(bench: Bench):
    """I5: nothing is written into a register, and no packet of the old epoch gets in."""
    bench.install(*SETTINGS, root(2))
    for slot in range(SLOTS):
        bench.send(1, sent(1, 1000, slot=slot, round=500, flags=0xC0, exponent=99))
    bench.install(root(2).at(EPOCH + 1))
    for slot in range(SLOTS):
        assert bench.verdict_of(2, sent(2, 1000, slot=slot, round=501)) is Verdict.STALE_EPOCH
        bench.send(1, sent(1, 1, slot=slot, epoch=EPOCH + 1))
        (_, frame), _ = bench.send(2, sent(2, 2, slot=slot, epoch=EPOCH + 1))
        assert (set(payload(frame).lane), payload(frame).flags, payload(frame).exponent) == ({3}, 0, 0)
    bench.check_counters()


def test_another_tree_gets_the_slots_of_an_ended_one(bench: Bench):
    bench.install(*SETTINGS, root(2))
    bench.send(1, sent(1, 1000, round=500))
    bench.remove(TREE)
    other = TREE + 1
    bench.install(root(2, tree=other).at(EPOCH + 1))
    assert bench.verdict_of(2, sent(2, 1000, round=500)) is Verdict.UNADMITTED
    bench.send(1, sent(1, 1, tree=other, epoch=EPOCH + 1))
    (_, frame), _ = bench.send(2, sent(2, 2, tree=other, epoch=EPOCH + 1))
    assert set(payload(frame).lane) == {3}
    bench.check_counters(TREE)


def test_trees_side_by_side_keep_to_their_own_slots(bench: Bench):
    numbers = (1, 2, bench.device.trees - 2)
    trees = [root(2, tree=tree, base=SLOTS * place) for place, tree in enumerate(numbers)]
    bench.install(*SETTINGS, *trees)
    for value, at in enumerate(trees, 1):
        bench.send(1, sent(1, value, tree=at.tree, slot=3))
    for value, at in enumerate(trees, 1):
        (_, frame), _ = bench.send(2, sent(2, 10, tree=at.tree, slot=3))
        assert set(payload(frame).lane) == {10 + value}
    bench.check_counters()


def test_what_lies_behind_the_packet_in_the_frame_stays_there(bench: Bench):
    bench.install(*SETTINGS, root(2))
    bench.send(1, sent(1, 1) + b"padding")
    results = bench.send(2, sent(2, 1) + b"\x00\x00")
    assert {frame[-2:] for _, frame in results} == {b"\x00\x00"}


def test_the_job_port_and_the_identification_go_back_as_they_came(bench: Bench):
    bench.install(*SETTINGS, replace(root(1), udp_port=0xF0FF))
    header = Netfold(tree=TREE, epoch=EPOCH, child=1, lanes=[1] * LANES)
    ((_, frame),) = bench.send(1, gradient(header, Ip(dscp=10, identification=77), port=0xF0FF))
    assert frame[34:38] == b"\xf0\xff\xf0\xff"
    assert frame[18:20] == b"\x00\x4d"
    assert frame[15] == 10 << 2 | 2
