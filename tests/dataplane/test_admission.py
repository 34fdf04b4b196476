# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which sender may send what: every packet that is not exactly an admitted one changes no slot (I4) and is counted
with its reason (I8)."""

from __future__ import annotations

import pytest

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.protocol.wire import Kind, Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import EPOCH, SETTINGS, SLOTS, TREE, UPLINK, inner, passing, root, sent
from tests.dataplane.frames import JOB_PORT
from tests.dataplane.node import MANAGED, Pass, TreeAt


@pytest.mark.parametrize(
    ("port", "forged", "verdict"),
    [
        (2, {}, Verdict.UNADMITTED),
        (3, {}, Verdict.UNADMITTED),
        (UPLINK, {}, Verdict.UNADMITTED),
        (1, {"child": 2}, Verdict.UNADMITTED),
        (1, {"child": 0}, Verdict.UNADMITTED),
        (1, {"child": 0xFFFF}, Verdict.UNADMITTED),
        (1, {"tree": TREE + 1}, Verdict.UNADMITTED),
        (1, {"tree": 0}, Verdict.UNADMITTED),
        (1, {"tree": MANAGED}, Verdict.UNADMITTED),
        (1, {"kind": Kind.RESULT}, Verdict.UNADMITTED),
        (UPLINK, {"kind": Kind.RESULT, "epoch": EPOCH + 1}, Verdict.UNADMITTED),
        (1, {"udp_port": JOB_PORT + 1}, Verdict.UNADMITTED),
        (1, {"udp_port": MANAGEMENT_PORT}, Verdict.UNADMITTED),
        (1, {"udp_port": JOB_PORT + 1, "epoch": EPOCH + 1}, Verdict.UNADMITTED),
        (1, {"udp_port": JOB_PORT + 1, "slot": SLOTS}, Verdict.UNADMITTED),
        (1, {"kind": Kind.READ}, Verdict.UNADMITTED),
        (1, {"kind": Kind.RESET}, Verdict.UNADMITTED),
        (1, {"kind": Kind.READ, "tree": MANAGED}, Verdict.UNADMITTED),
        (1, {"kind": Kind.RESET, "tree": MANAGED}, Verdict.UNADMITTED),
        (1, {"kind": Kind.RESET, "tree": MANAGED, "udp_port": JOB_PORT}, Verdict.UNADMITTED),
        (1, {"epoch": EPOCH - 1}, Verdict.STALE_EPOCH),
        (1, {"epoch": EPOCH + 1}, Verdict.STALE_EPOCH),
        (1, {"epoch": 0}, Verdict.STALE_EPOCH),
        (1, {"epoch": 4095}, Verdict.STALE_EPOCH),
        (1, {"slot": SLOTS}, Verdict.BAD_SLOT),
        (1, {"slot": 0xFFFF}, Verdict.BAD_SLOT),
        (1, {"slot": SLOTS, "epoch": EPOCH + 1}, Verdict.STALE_EPOCH),
    ],
)
@pytest.mark.parametrize("node", [root(2), inner(2)], ids=["root", "inner"])
def test_a_forged_packet_changes_nothing_and_says_why(
    bench: Bench, node: TreeAt, port: int, forged: dict[str, int], verdict: Verdict
):
    bench.install(*SETTINGS, node)
    bench.send(1, sent(1, 1))
    before = _registers(bench)
    assert bench.verdict_of(port, sent(1, 1000, round=9, **forged)) is verdict
    assert _registers(bench) == before
    results = bench.send(2, sent(2, 2))
    assert {lane for _, frame in results for lane in Packet.parse(frame[42:]).lane} == {3}


def _registers(bench: Bench) -> list[bytes]:
    """Every slot around the tree's, read in-band."""
    reads = (sent(0, kind=Kind.READ, tree=MANAGED, slot=slot) for slot in range(2 * SLOTS))
    return [frame for read in reads for _, frame in bench.send(CPU_PORT, b"\0\0" + read)]


@pytest.mark.parametrize("port", [1, 2, 3])
def test_a_result_is_taken_only_from_the_port_towards_the_root(bench: Bench, port: int):
    bench.install(*SETTINGS, inner(3))
    assert bench.verdict_of(port, sent(1, kind=Kind.RESULT)) is Verdict.UNADMITTED
    assert bench.verdict_of(UPLINK, sent(1, kind=Kind.RESULT, udp_port=JOB_PORT + 1)) is Verdict.UNADMITTED


@pytest.mark.parametrize(
    "forged",
    [
        {"epoch": EPOCH + 1},
        {"slot": SLOTS},
        {"child": 3},
        {"tree": TREE + 1},
        {"kind": Kind.RESULT},
        {"udp_port": JOB_PORT + 1},
    ],
)
def test_a_switch_on_the_way_passes_only_what_is_admitted(bench: Bench, forged: dict[str, int]):
    bench.install(*SETTINGS, passing(1, 2))
    assert bench.verdict_of(1, sent(1, **forged)) is Verdict.UNADMITTED


def test_an_answer_for_one_child_passes_back_on_the_child_s_own_way(bench: Bench):
    at = TreeAt(TREE, EPOCH, SLOTS, passes=(Pass(1, 1, UPLINK),), answers=(Pass(UPLINK, 1, 1),))
    bench.install(*SETTINGS, at)
    ((port, frame),) = bench.send(UPLINK, sent(1, kind=Kind.RESULT))
    assert (port, frame[30:34]) == (1, bytes([10, 0, 0, 1]))
    assert bench.verdict_of(UPLINK, sent(2, kind=Kind.RESULT)) is Verdict.UNADMITTED


def test_packets_after_the_tree_is_gone_are_unadmitted(bench: Bench):
    bench.install(*SETTINGS, root(2))
    bench.send(1, sent(1))
    bench.remove(TREE)
    assert bench.verdict_of(1, sent(1)) is Verdict.UNADMITTED
    assert bench.verdict_of(2, sent(2)) is Verdict.UNADMITTED
    bench.check_counters(TREE)


def test_a_tree_without_a_way_out_is_counted_as_unrouted(bench: Bench):
    nowhere = TreeAt(TREE, EPOCH, SLOTS, root=True, children=root(1).children)
    bench.install(*SETTINGS, nowhere)
    assert bench.verdict_of(1, sent(1)) is Verdict.UNROUTED
    bench.install(TreeAt(TREE, EPOCH + 1, SLOTS, children=root(1).children))
    assert bench.verdict_of(1, sent(1, epoch=EPOCH + 1)) is Verdict.UNROUTED


@pytest.mark.parametrize("slots", [1, 2, 64, 4096])
def test_the_slot_range_is_bounded_to_the_bit(bench: Bench, slots: int):
    bench.install(*SETTINGS, root(1, slots=slots))
    assert bench.verdict_of(1, sent(1, slot=slots - 1)) is Verdict.RESULT_SENT
    for outside in (slots, 2 * slots - 1, slots | 0x8000, 0x8000, 0xFFFF):
        assert bench.verdict_of(1, sent(1, slot=outside)) is Verdict.BAD_SLOT
