# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE workers as children of nodes with wider bitmaps: their contributions, READ and RESET of their slots, reliable
connections of as many workers as a leaf takes, and attackers beside those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest

from netfold.protocol.wire import Flag, Kind, Packet, Verdict
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.conftest import Devices, Fresh
from tests.dataplane.fixtures import EPOCH, SETTINGS, TREE, UPLINK
from tests.dataplane.frames import Netfold, gradient
from tests.dataplane.node import TreeAt
from tests.dataplane.rc_world import RcWorld
from tests.dataplane.roce_fixtures import MORE, PORTS, at_inner, at_root, sent, settings, successor
from tests.dataplane.roce_frames import LAST, ONLY, PSN_AT, Rc
from tests.dataplane.roce_node import RoceWorker
from tests.dataplane.test_children import LANES, SIZES, Size, children, frame
from tests.dataplane.test_management import manage
from tests.dataplane.test_rc import new_world
from tests.dataplane.test_roce import lanes_of, received
from tests.dataplane.test_roce_floats import floats_of, in_memory
from tests.dataplane.test_roce_isolation import besiege_world

RING = 4
MANY = 64


@pytest.fixture(params=SIZES, ids=str)
def size(request: pytest.FixtureRequest) -> Size:
    return request.param


@dataclass(frozen=True)
class Leaf:
    """A node whose last children, with the highest bits, are a ring of RoCE workers; `others` have the bits below."""

    bench: Bench
    at: TreeAt

    @classmethod
    def of(cls, bench: Bench, size: Size, ring: TreeAt, *, floats: bool = False) -> Leaf:
        at = replace(ring, children=(*children(size.children - RING), *ring.children))
        made = [s for s in settings(ring, RING) if s is not ring and s not in (*SETTINGS, *MORE)]
        roce = [replace(s, at=at, floats=floats) if isinstance(s, RoceWorker) else s for s in made]
        bench.install(*SETTINGS, *MORE, at, *roce)
        return cls(bench, at)

    def others(self, value: int | list[int], **fields: int) -> None:
        for child in self.at.children[:-RING]:
            assert self.bench.send(child.port, frame(child, value, **fields)) == []

    def bit(self, worker: int) -> int:
        return 1 << len(self.at.children) - RING + PORTS.index(worker)

    def send(self, worker: int, value: int, chunk: int = 0, **fields: int) -> list[tuple[int, bytes]]:
        return self.bench.send(worker, self.packet(worker, value, chunk, **fields))

    def packet(self, worker: int, value: int, chunk: int = 0, **fields: int) -> bytes:
        return sent(worker, chunk, Rc(lanes=[value] * LANES, **fields), RING)


@pytest.fixture
def bench(target: str, fresh: Fresh, size: Size) -> Bench:
    return fresh(target, LANES, children=size.bits)


def test_each_worker_gets_the_sum_of_all_children(bench: Bench, size: Size):
    leaf = Leaf.of(bench, size, at_root(RING))
    leaf.others(1)
    for worker in PORTS[:-1]:
        assert leaf.send(worker, worker, opcode=ONLY) == []
        assert bench.verdict_of(worker, leaf.packet(worker, 99)) is Verdict.DUPLICATE
    results = leaf.send(PORTS[-1], PORTS[-1], opcode=ONLY)
    assert [port for port, _ in results] == list(PORTS)
    total = len(leaf.at.children) - RING + sum(PORTS)
    assert all(set(lanes_of(received(data))) == {total} for _, data in results)
    for worker in PORTS:
        ((port, data),) = leaf.send(worker, 99)
        assert (port, data) == (successor(worker, RING).port, dict(results)[port])
    bench.check_counters()


def test_an_inner_leaf_sends_the_sum_up_and_delivers_the_result(bench: Bench, size: Size):
    leaf = Leaf.of(bench, size, at_inner(RING))
    leaf.others(1)
    for worker in PORTS:
        left = leaf.send(worker, 1, opcode=LAST, ack_request=True)
    ((port, data),) = left
    up = Packet.parse(data[42:])
    assert (port, up.kind, up.child, set(up.lane)) == (UPLINK, Kind.GRADIENT, 40, {size.children})
    header = Netfold(Kind.RESULT, TREE, EPOCH, 0, 0, 40, [77] * LANES, reserved=data[42 + 13])
    results = bench.send(UPLINK, gradient(header))
    assert [port for port, _ in results] == list(PORTS)
    assert all(set(lanes_of(received(data))) == {77} for _, data in results)
    bench.check_counters()


def test_floats_are_added_as_they_lie_in_memory(bench: Bench, size: Size):
    leaf = Leaf.of(bench, size, at_root(RING), floats=True)
    half = np.full(LANES, 0.5, np.float32)
    leaf.others(half.view(np.int32).tolist(), flags=int(Flag.FLOATS))
    for worker in PORTS:
        results = bench.send(worker, sent(worker, 0, in_memory(half.view(np.uint32)), RING))
    assert [port for port, _ in results] == list(PORTS)
    for _, data in results:
        assert set(floats_of(data).view(np.float32).tolist()) == {0.5 * size.children}
    bench.check_counters()


def test_a_read_shows_the_workers_bits_and_a_reset_slot_adds_up_anew(bench: Bench, size: Size):
    leaf = Leaf.of(bench, size, at_root(RING))
    expected = 0
    for worker in PORTS[:-1]:
        leaf.send(worker, 1)
        expected |= leaf.bit(worker)
        assert manage(bench, Kind.READ, 0)[0] == expected
    bitmap, found = manage(bench, Kind.RESET, 0)
    assert (bitmap, found.epoch, set(found.lane)) == (expected, EPOCH, {RING - 1})
    assert manage(bench, Kind.READ, 0)[1].epoch == 0
    assert bench.verdict_of(PORTS[1], leaf.packet(PORTS[1], 5)) is Verdict.ACCUMULATED
    assert manage(bench, Kind.READ, 0)[0] == leaf.bit(PORTS[1])
    leaf.others(1)
    for worker in (PORTS[0], *PORTS[2:]):
        results = leaf.send(worker, 5)
    assert all(
        set(lanes_of(received(data))) == {len(leaf.at.children) - RING + 5 * RING} for _, data in results
    )
    assert manage(bench, Kind.READ, 0)[0] == (1 << size.children) - 1
    bench.check_counters()


def test_a_packet_of_an_older_connection_is_of_no_epoch(bench: Bench, size: Size):
    leaf = Leaf.of(bench, size, at_root(RING))
    for worker in PORTS:
        data = bytearray(leaf.packet(worker, 1, chunk=-1))
        assert bench.verdict_of(worker, bytes(data)) is Verdict.STALE_EPOCH
        data[PSN_AT] ^= 1  # no longer what its ICRC is of
        assert bench.verdict_of(worker, bytes(data)) is Verdict.MALFORMED
    assert manage(bench, Kind.READ, 0)[0] == 0


RINGS = {
    "33 of 64": (64, ([33], [True])),
    "64 of 64": (64, ([64], [True])),
    "254 of 256": (256, ([254], [True])),
    "256 of 256, below two leaves that pass": (256, ([128, 128], [False, False])),
    "129 of 256, 128 of them below a leaf that passes": (256, ([128, 128], [False, True])),
}
"""All children of a node are RoCE workers, or sums of leaves. A leaf has no 256 of them: their ports are below 256."""
EACH = [next(iter(RINGS)), *(pytest.param(name, marks=pytest.mark.long) for name in list(RINGS)[1:])]


def ring_world(target: str, devices: Devices, tally: Tally, name: str, random: Random) -> RcWorld:
    if target != "softswitch":
        pytest.skip(f"{target} has fewer ports than the workers that a wide node takes")
    bits, shape = RINGS[name]
    return new_world(target, devices, tally, LANES, shape, random, bits)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", EACH)
def test_reliable_connections_of_many_workers_bring_every_sum(
    target: str, devices: Devices, tally: Tally, name: str
):
    """Losses, doubles and reordering, in two epochs of connections, or in one of more workers than `MANY`."""
    random = Random(name)
    world = ring_world(target, devices, tally, name, random)
    for _ in range(2 if len(world.places) <= MANY else 1):
        for _ in range(40 * len(world.places)):
            world.happen(loss=0.02, repeats=0.03)
        world.finish()
        world.begin()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", EACH)
def test_an_attacker_changes_nothing_of_many_roce_workers(
    target: str, devices: Devices, tally: Tally, name: str
):
    random = Random(name)
    besiege_world(ring_world(target, devices, tally, name, random), random, 4)
