# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller reads and resets slots in-band (docs/reference/protocol.md, section 3.6)."""

from __future__ import annotations

import struct

import pytest

from netfold.controller.switches.tables import CPU_PORT
from netfold.protocol.wire import LANE_MAX, Flag, Kind, Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import EPOCH, SETTINGS, TREE, root, sent
from tests.dataplane.frames import LANES
from tests.dataplane.node import MANAGED


def manage(bench: Bench, kind: Kind, slot: int) -> tuple[int, Packet]:
    """The bitmap and the slot, as the controller gets them."""
    frame = sent(0, [0] * bench.lanes, kind=kind, tree=MANAGED, slot=slot, epoch=0)
    ((port, answer),) = bench.send(CPU_PORT, b"\0\0" + frame)
    assert port == CPU_PORT
    (ingress,) = struct.unpack_from(">H", answer)
    assert ingress >> 7 == CPU_PORT
    header = 2 + bench.device.children // 8
    return int.from_bytes(answer[2:header], "big"), Packet.parse(answer[header + 42 :])


@pytest.mark.parametrize("kind", [Kind.READ, Kind.RESET])
@pytest.mark.parametrize("slot", [0, 1, 4095])
def test_a_slot_never_used_is_empty(new_bench: Bench, kind: Kind, slot: int):
    new_bench.install(*SETTINGS)
    bitmap, found = manage(new_bench, kind, slot)
    assert (bitmap, found.epoch, found.round, found.slot, set(found.lane)) == (0, 0, 0, slot, {0})
    new_bench.check_counters()


def test_a_slot_shows_all_that_it_holds(bench: Bench):
    base = 128
    bench.install(*SETTINGS, root(3, base=base))
    bench.send(1, sent(1, list(range(LANES)), slot=2, round=77, exponent=9, flags=Flag.CONGESTION))
    bench.send(3, sent(3, 100, slot=2, round=77))
    for _ in range(2):  # reading changes nothing
        bitmap, found = manage(bench, Kind.READ, base + 2)
        assert (bitmap, found.epoch, found.round, found.exponent) == (0b101, EPOCH, 77, 9)
        assert found.lane == tuple(100 + lane for lane in range(LANES))
        assert found.flags == Flag.CONGESTION
    assert len(bench.send(2, sent(2, 0, slot=2, round=77))) == 3
    assert manage(bench, Kind.READ, base + 2)[0] == 0b111
    bench.check_counters()


def test_a_sum_that_does_not_fit_is_flagged(bench: Bench):
    bench.install(*SETTINGS, root(3))
    bench.send(1, sent(1, int(LANE_MAX)))
    bench.send(2, sent(2, 1))
    assert manage(bench, Kind.READ, 0)[1].flags == Flag.OVERFLOW


def test_a_reset_slot_takes_any_epoch_again(bench: Bench):
    """A reset is needed when a slot range has seen the last epoch, 4095."""
    bench.install(*SETTINGS, root(2).at(4095))
    bench.send(1, sent(1, 1000, epoch=4095, round=0xFFFFF))
    bench.install(root(2).at(1))
    assert bench.verdict_of(1, sent(1, 1, epoch=1)) is Verdict.STALE_CHUNK
    bitmap, found = manage(bench, Kind.RESET, 0)
    assert (bitmap, found.epoch, found.round) == (0b01, 4095, 0xFFFFF)
    assert manage(bench, Kind.READ, 0)[1].epoch == 0
    assert bench.verdict_of(1, sent(1, 1, epoch=1)) is Verdict.ACCUMULATED
    (_, frame), _ = bench.send(2, sent(2, 2, epoch=1))
    assert set(Packet.parse(frame[42:]).lane) == {3}
    bench.check_counters()


def test_without_the_controller_s_entries_no_sender_reads(bench: Bench):
    bench.install(root(2))
    bench.send(1, sent(1))
    frame = sent(0, kind=Kind.RESET, tree=MANAGED)
    assert bench.verdict_of(CPU_PORT, b"\0\0" + frame) is Verdict.UNADMITTED


@pytest.mark.parametrize("kind", [Kind.GRADIENT, Kind.RESULT])
def test_the_controller_s_port_is_no_worker(bench: Bench, kind: Kind):
    bench.install(*SETTINGS, root(2))
    for tree in (TREE, MANAGED):
        frame = sent(1, kind=kind, tree=tree)
        assert bench.verdict_of(CPU_PORT, b"\0\0" + frame) is Verdict.UNADMITTED
