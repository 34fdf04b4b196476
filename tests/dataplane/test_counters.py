# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every netfold packet counts once, in the cell of its tree and verdict (I8); nothing else counts."""

from __future__ import annotations

import pytest

from netfold.controller.switches.tables import CPU_PORT
from netfold.p4src.tools.p4build import Profile
from netfold.protocol.wire import Kind, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.device import VERDICTS, SoftDevice, compiled
from tests.dataplane.fixtures import EPOCH, SETTINGS, SLOTS, TREE, UPLINK, inner, passing, root, sent
from tests.dataplane.frames import LANES, Ip, arp_request, ethernet, udp
from tests.dataplane.node import MANAGED, TreeAt

EACH_AT_A_ROOT = [
    (1, sent(1), Verdict.ACCUMULATED),
    (1, sent(1), Verdict.DUPLICATE),
    (2, sent(2), Verdict.RESULT_SENT),
    (1, sent(1), Verdict.RESULT_RESENT),
    (1, sent(1, round=1), Verdict.ACCUMULATED),
    (2, sent(2), Verdict.STALE_CHUNK),
    (1, sent(1, slot=SLOTS), Verdict.BAD_SLOT),
    (1, sent(1, epoch=EPOCH + 1), Verdict.STALE_EPOCH),
    (3, sent(1), Verdict.UNADMITTED),
    (1, sent(1)[:-1], Verdict.MALFORMED),
    (CPU_PORT, b"\0\0" + sent(0, kind=Kind.READ, tree=MANAGED), Verdict.SLOT_READ),
    (CPU_PORT, b"\0\0" + sent(0, kind=Kind.RESET, tree=MANAGED), Verdict.SLOT_RESET),
]
EACH_AT_AN_INNER_NODE = [
    (1, sent(1), Verdict.ACCUMULATED),
    (2, sent(2), Verdict.SUM_SENT),
    (2, sent(2), Verdict.SUM_RESENT),
    (UPLINK, sent(2, kind=Kind.RESULT), Verdict.MULTICAST),
]


EACH_ON_THE_WAY = [(1, sent(1), Verdict.FORWARDED), (1, sent(1, ttl=1), Verdict.EXPIRED)]
NOWHERE = TreeAt(TREE, EPOCH, SLOTS, root=True, children=root(1).children)
EACH_NOWHERE = [(1, sent(1), Verdict.UNROUTED)]
CASES = [
    (root(2), EACH_AT_A_ROOT),
    (inner(2), EACH_AT_AN_INNER_NODE),
    (passing(1), EACH_ON_THE_WAY),
    (NOWHERE, EACH_NOWHERE),
]


@pytest.mark.parametrize(("node", "packets"), CASES, ids=["root", "inner node", "on the way", "nowhere"])
def test_every_verdict_has_a_cell_of_its_own(bench: Bench, node: TreeAt, packets: list):
    bench.install(*SETTINGS, node)
    for port, frame, verdict in packets:
        assert bench.verdict_of(port, frame) is verdict


def test_no_verdict_is_forgotten_here():
    elsewhere = {Verdict.LATE, Verdict.SLOT_REUSED}  # test_quorum.py: not every target has them
    assert {verdict for _, packets in CASES for _, _, verdict in packets} | elsewhere == set(Verdict)


def test_the_cells_of_two_trees_are_apart(bench: Bench):
    last = bench.device.trees - 2
    bench.install(*SETTINGS, root(2), root(2, tree=last, base=64))
    for _ in range(3):
        bench.send(1, sent(1))
    bench.send(1, sent(1, tree=last))
    assert bench.device.verdicts(TREE) == {Verdict.ACCUMULATED: 1, Verdict.DUPLICATE: 2}
    assert bench.device.verdicts(last) == {Verdict.ACCUMULATED: 1}
    assert bench.device.verdicts(0) == {}


def test_other_packets_count_nowhere(bench: Bench):
    bench.install(*SETTINGS, root(2))
    for frame in (
        ethernet(Ip(dst="10.0.0.2").pack(udp(b"x", 1, 2))),
        arp_request("10.0.0.2"),
        ethernet(b"", 0x86DD),
    ):
        bench.send(1, frame)
    bench.send(CPU_PORT, (1 << 7).to_bytes(2, "big") + sent(1))
    for index in (0, TREE):
        assert bench.device.verdicts(index) == {}


@pytest.mark.parametrize("frame", [sent(1), sent(1)[:50]], ids=["admitted", "malformed"])
def test_bytes_are_those_of_the_frame_that_came_in(frame: bytes):
    with SoftDevice(compiled(Profile(LANES))[0]) as device:
        device.insert(root(2).entities())
        device.inject(1, frame)
        cells = range(VERDICTS * (TREE + 1))
        counted = [device.pipeline.counter_read("SwitchIngress.verdicts", cell) for cell in cells]
    assert [(c.packets, c.bytes) for c in counted if c.packets] == [(1, len(frame))]
